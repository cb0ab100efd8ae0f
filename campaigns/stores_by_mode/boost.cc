// Boost.Interprocess: a map in a managed_mapped_file. flush() calls msync with MS_ASYNC; mapped_region::flush can wait.
#include "store.h"

#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/containers/map.hpp>
#include <boost/interprocess/containers/string.hpp>
#include <boost/interprocess/file_mapping.hpp>
#include <boost/interprocess/managed_mapped_file.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <boost/version.hpp>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <sys/mman.h>

namespace ipc = boost::interprocess;

using Manager = ipc::managed_mapped_file::segment_manager;
using Text = ipc::basic_string<char, std::char_traits<char>, ipc::allocator<char, Manager>>;
using Entry = std::pair<const Text, Text>;
using Records = ipc::map<Text, Text, std::less<Text>, ipc::allocator<Entry, Manager>>;

static std::unique_ptr<ipc::managed_mapped_file> file;
static Records *records;
static bool flushes, waits;

extern "C" const char *store_version(void)
{
    return BOOST_LIB_VERSION;
}

extern "C" void store_open(const char *path, const char *mode, int is_new)
{
    flushes = strstr(mode, "+flush");
    waits = strstr(mode, "+msync");
    try {
        if (is_new) {
            file = std::make_unique<ipc::managed_mapped_file>(ipc::create_only, path, 256 << 10);
            records = file->construct<Records>("records")(std::less<Text>(), file->get_segment_manager());
        } else {
            file = std::make_unique<ipc::managed_mapped_file>(ipc::open_only, path);
            records = file->find<Records>("records").first;
        }
    } catch (const std::exception &error) {
        refuse("managed_mapped_file", error.what());
    }
    if (!records)
        refuse("find", "there is no such object");
}

static Text text(const char *of)
{
    return Text(of, file->get_segment_manager());
}

// The mapping begins before get_address(), which points behind a header.
static char *page()
{
    auto at = reinterpret_cast<std::uintptr_t>(file->get_address());
    return reinterpret_cast<char *>(at & ~std::uintptr_t(4095));
}

static std::size_t bytes()
{
    return static_cast<char *>(file->get_address()) + file->get_size() - page();
}

extern "C" void store_put(const char *key, const char *value)
{
    if (value) {
        auto at = records->insert(Entry(text(key), text(""))).first;
        at->second = value;
    } else {
        records->erase(text(key));
    }
    if (flushes)
        file->flush();
    if (waits && msync(page(), bytes(), MS_SYNC))
        refuse("msync", strerror(errno));
}

extern "C" char *store_get(const char *key)
{
    auto at = records->find(text(key));
    return at == records->end() ? nullptr : text_of(at->second.data(), at->second.size());
}

extern "C" void store_each(void (*each)(const void *, size_t, const void *, size_t))
{
    for (const Entry &entry : *records)
        each(entry.first.data(), entry.first.size(), entry.second.data(), entry.second.size());
}

extern "C" void store_check(void)
{
    if (!file->check_sanity())
        refuse("check_sanity", "it says no");
}

extern "C" void store_close(void)
{
    file.reset();
}
