"""What is run: names, and values of configuration keys. New names go to the end of their table.

The matrix gives each combination its machine by the places of its names, so a name in the middle
would move others to another machine.
"""

from __future__ import annotations

Settings = dict[str, str]
"""Values by `SECTION.KEY`."""

DESIGNS: tuple[str, ...] = (
    *("ideal", "base", "fwb", "fwb-literal", "fwb-crade", "fwb-unsafe", "fwb-slde", "hwl"),
    *("hw-rlog", "hw-ulog", "hoop", "hoop-literal", "lad", "lad-literal", "lalea-lad", "lsm"),
    *("morlog", "morlog-literal", "morlog-crade", "morlog-slde", "morlog-dp"),
    *("opt-redo", "opt-redo-literal", "opt-undo", "opt-undo-literal", "osp", "osp-literal"),
    *("redu", "redu-literal", "lalea", "blom", "lalea-blom", "silo", "silo-literal"),
    *("redo-clwb", "undo-clwb", "undo-clwb-literal", "unsafe-redo", "unsafe-undo"),
)

WORKLOADS: tuple[str, ...] = (
    *("array", "btree", "chain-queue", "ctree", "echo", "hash", "queue", "radix-tree", "rbtree"),
    *("sdg", "smallbank", "sps", "ssca2", "tatp", "tpcc", "tpcc-new-order", "vector"),
    *("ycsb", "ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f"),
)

PAPERS: tuple[str, ...] = ("silo", "morlog", "fwb", "hoop", "lalea")
"""Machines of papers."""

MACHINES: tuple[str, ...] = (*PAPERS, "cramped")

# Its runs are those of all small programs (crates/graven/tests/lab/enumeration.rs).
OF_SMALL_PROGRAMS: tuple[str, ...] = ("miniature",)

SECTIONS: dict[str, str] = {
    **dict.fromkeys(("fwb", "fwb-literal", "fwb-crade", "fwb-unsafe", "fwb-slde"), "fwb"),
    **dict.fromkeys(("hwl", "hw-rlog", "hw-ulog"), "fwb"),
    **dict.fromkeys(("hoop", "hoop-literal"), "hoop"),
    **dict.fromkeys(("lad", "lad-literal", "lalea-lad"), "lad"),
    **dict.fromkeys(("morlog", "morlog-literal"), "morlog"),
    **dict.fromkeys(("morlog-crade", "morlog-slde", "morlog-dp"), "morlog"),
    **dict.fromkeys(("opt-redo", "opt-redo-literal"), "opt-redo"),
    **dict.fromkeys(("opt-undo", "opt-undo-literal"), "opt-undo"),
    **dict.fromkeys(("osp", "osp-literal"), "osp"),
    **dict.fromkeys(("redu", "redu-literal", "lalea", "blom", "lalea-blom"), "redu"),
    **dict.fromkeys(("silo", "silo-literal"), "silo"),
    **dict.fromkeys(("redo-clwb", "undo-clwb", "undo-clwb-literal"), "software_log"),
    **dict.fromkeys(("unsafe-redo", "unsafe-undo"), "software_log"),
    **{"base": "base", "lsm": "lsm"},
}
"""The configuration section of each design that has one."""

SMALL: Settings = {
    "tatp.subscribers": "400",
    "smallbank.customers": "1000",
    "smallbank.hotspot_customers": "100",
    "tpcc.items": "400",
    "tpcc.districts": "4",
    "tpcc.customers_per_district": "30",
    "tpcc.orders_per_district": "30",
}
"""Small databases; each is used with its workloads only."""

SMALL_CACHES: Settings = {
    "l1.bytes": "2 KB",
    "l1.ways": "4",
    "l2.bytes": "8 KB",
    "l2.ways": "4",
    "llc.bytes": "128 KB",
}
"""So that small footprints leave the caches."""

FIT: dict[str, Settings] = {
    "fwb": {"fwb.log_buffer_entries": "8"},
    "morlog": {"morlog.undo_redo_entries": "8"},
    "hoop": {"hoop.block_bytes": "64 KB", "pm.log_region_bytes": "4 MB"},
    "opt-redo": {"opt-redo.log_bytes_per_thread": "64 KB"},
    "opt-undo": {"opt-undo.log_bytes_per_thread": "64 KB"},
}
"""With which designs of a section fit every machine."""

SLOW: dict[str, Settings] = {"morlog-dp": {"morlog.log_bytes": "64 KB"}}
"""With which designs do not take the host long on machines without ADR."""

BUSY: dict[str, Settings] = {
    "base": {"base.log_bytes_per_thread": "16 KB"},
    "fwb": {
        "fwb.log_buffer_entries": "8",
        "fwb.log_bytes": "64 KB",
        "fwb.scan_interval_cycles": "20000",
    },
    "hoop": {
        "hoop.block_bytes": "16 KB",
        "pm.log_region_bytes": "512 KB",
        "hoop.mapping_table_bytes": "16 KB",
        "hoop.eviction_buffer_bytes": "4 KB",
        "hoop.gc_period_us": "20",
    },
    "lad": {"controller.adr_entries": "16", "lad.log_bytes_per_thread": "16 KB"},
    "lsm": {"lsm.log_bytes": "4 MB", "lsm.segment_bytes": "16 KB", "lsm.gc_period_us": "20"},
    "morlog": {
        "morlog.undo_redo_entries": "8",
        "morlog.log_bytes": "64 KB",
        "morlog.scan_interval_cycles": "20000",
    },
    "opt-redo": {
        "opt-redo.log_bytes_per_thread": "48 KB",
        "opt-redo.victim_cache_lines": "256",
        "opt-redo.checkpoint_delay_cycles": "500",
    },
    "opt-undo": {"opt-undo.log_bytes_per_thread": "16 KB"},
    "osp": {"osp.shadow_pages": "40", "osp.journal_bytes": "1 KB", "osp.tlb_entries": "4"},
    "redu": {"redu.log_bytes_per_thread": "16 KB", "redu.victim_lines": "256"},
    "silo": {"silo.log_buffer_entries": "8", "silo.log_bytes_per_thread": "16 KB"},
    "software_log": {"software_log.log_bytes_per_thread": "16 KB"},
}
"""With which designs of a section do all that they do, early: logs wrap, work accumulates."""

CONTENDED: Settings = {"workload.sharing": "shared", "workload.distribution": "zipf"}
"""So that threads meet each other."""

LARGE: Settings = {
    "workload.operations_per_transaction": "8",
    "workload.insert_percent": "30",
    "workload.remove_percent": "20",
    "workload.distribution": "zipf",
}
"""So that transactions are large, and words are stored again that have left the caches."""

FEATURES: dict[str, Settings] = {
    "volatile-queues": {"controller.adr": "false"},
    "interleaved-lines": {"controller.interleave": "line", "controller.channels": "2"},
    "in-order": {"core.model": "in-order"},
    "out-of-order": {"core.model": "out-of-order", "core.issue_width": "4"},
    "unbuffered": {"pm.buffer_lines": "0"},
    "written-back": {"pm.buffer_lines": "0", "pm.row_writes": "write-back"},
    "drains-alone": {"controller.scheduler": "frfcfs-wqf", "pm.row_writes": "hit-or-conflict"},
    "cells": {"pm.cells": "tlc-rram", "pm.codec": "crade"},
    "cells-slde": {"pm.cells": "tlc-rram", "pm.codec": "slde"},
    "no-l2": {"l2.bytes": "0 B"},
    "l2": {"l2.bytes": "64 KB"},
    "write-distances": {"statistics.write_distances": "true"},
    "two-threads": {"core.count": "2", "core.threads_per_core": "2"},
    "two-threads-out-of-order": {
        "core.count": "2",
        "core.threads_per_core": "2",
        "core.model": "out-of-order",
    },
}
"""Settings of the machine that every design is run with."""

DESIGN_KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    "base": {"base.log_bytes_per_thread": ("3 KB", "4 KB")},
    "fwb": {
        "fwb.log_bytes": ("16 KB", "32 KB", "1 MB"),
        "fwb.record_format": ("word",),
        "fwb.record_format+fwb.slot_bytes": ("line+16", "word+64"),
        "fwb.slot_bytes": ("64",),
        "fwb.log_values+fwb.write_back": ("redo+none", "undo+none", "redo+clwb", "undo+clwb"),
        "fwb.log_values": ("redo", "undo"),
        "fwb.write_back": ("clwb", "none"),
        "fwb.truncation_percent": ("0", "10", "90"),
        "fwb.write_back+fwb.truncation_percent": ("clwb+0", "clwb+10", "clwb+90"),
        "pm.log_packing": ("always",),
        "pm.log_packing+fwb.dirty_flags": ("always+true",),
        "fwb.log_buffer_entries": ("0", "1", "4", "48"),
        "fwb.allow_unsafe_buffer+fwb.log_buffer_entries": ("true+48",),
        "fwb.instant_commit": ("true",),
        "fwb.scan_interval_cycles": ("0", "2000", "50000"),
        "fwb.scan_port": ("set", "cache"),
        "fwb.scan_tags_per_cycle": ("1", "16"),
        "fwb.scan_port+fwb.scan_tags_per_cycle": ("set+1", "cache+1", "cache+16"),
        "fwb.transaction_id_bits": ("2", "8"),
    },
    "hoop": {
        "hoop.oop_buffer_bytes": ("256 B", "384 B"),
        "hoop.mapping_table_bytes": ("1 KB", "8 KB"),
        "hoop.eviction_buffer_bytes": ("72 B", "1 KB"),
        "hoop.buffer_read_cycles": ("0", "20"),
        "hoop.unpack_cycles": ("0", "20"),
        "hoop.block_bytes": ("1 KB", "32 KB"),
        "hoop.line_in_one_slice": ("false",),
        "hoop.slice_order": ("sequential",),
        "hoop.gc_period_us": ("1", "5", "1000"),
        "hoop.gc_scope": ("all",),
        "hoop.gc_reads": ("2", "3"),
        "hoop.gc_writes": ("1", "2"),
        "hoop.controllers": ("2", "3"),
        "hoop.recovery_threads": ("1", "3"),
    },
    "lad": {
        "controller.adr_entries": ("1", "2", "4", "64"),
        "lad.push_interval_cycles": ("0", "40"),
        "lad.pool_read_cycles": ("0", "40"),
        "lad.proactive_flush": ("false",),
        "lad.recent_lines": ("1", "2", "16"),
        "lad.wait_for_place": ("false",),
        "lad.commit_waits_for_nvm": ("true",),
        "lad.overflow_log": ("transaction",),
        "lad.log_bytes_per_thread": ("8 KB",),
        "lad.load_aware_log": ("true",),
        "lad.load_aware_log+lalea.fle_entries+lalea.fh_entries": ("true+6+2", "true+16+4"),
    },
    "lsm": {
        "lsm.log_bytes": ("512 KB", "8 MB"),
        "lsm.segment_bytes": ("4 KB", "64 KB"),
        "lsm.entry_words_max": ("1", "5"),
        "lsm.gc_period_us": ("1", "5.5"),
        "lsm.gc_requests": ("1", "2"),
        "lsm.index_bytes": ("256 KB", "16 MB"),
        "lsm.index_levels_max": ("1", "4"),
        "lsm.index_promotion": ("1/2",),
        "lsm.lookups": ("all",),
        "lsm.write_set_slots": ("16", "4096"),
        "lsm.lookup_instructions": ("0", "40"),
        "lsm.node_instructions": ("0", "40"),
        "lsm.write_set_instructions": ("0", "40"),
        "lsm.entry_instructions": ("0", "80"),
    },
    "morlog": {
        "morlog.log_bytes": ("32 KB", "1 MB"),
        "morlog.log_type": ("per-thread",),
        "morlog.truncation": ("transaction-table",),
        "morlog.log_type+morlog.truncation": ("per-thread+transaction-table",),
        "morlog.transaction_table_entries": ("4", "8"),
        "morlog.truncation+morlog.transaction_table_entries": ("transaction-table+8",),
        "morlog.undo_redo_entries": ("1", "4"),
        "morlog.redo_entries": ("1", "8"),
        "morlog.allow_unsafe_buffer+morlog.undo_redo_entries": ("true+48",),
        "morlog.delay_persistence": ("true",),
        "morlog.dirty_flags": ("true",),
        "morlog.delay_persistence+morlog.dirty_flags": ("true+true",),
        "morlog.walk_sets_per_cycle": ("2", "64"),
        "morlog.dram_lines": ("0", "1"),
        "morlog.scan_interval_cycles": ("0", "2000", "50000"),
        "morlog.transaction_id_bits": ("2", "8"),
        "morlog.dirty_flags+pm.codec": ("true+crade", "true+slde"),
    },
    "opt-redo": {
        "opt-redo.log_bytes_per_thread": ("32 KB", "256 KB"),
        "opt-redo.log_buffer_entries": ("1", "2"),
        "opt-redo.merge_updates": ("true",),
        "opt-redo.victim_cache_lines": ("8", "1024"),
        "opt-redo.victim_read_cycles": ("0", "40"),
        "opt-redo.checkpoint_transactions": ("1", "4"),
        "opt-redo.checkpoint_delay_cycles": ("0", "50000"),
        "opt-redo.checkpoint_reads": ("1", "2"),
        "opt-redo.checkpoint_writes": ("1", "2"),
    },
    "opt-undo": {
        "opt-undo.log_bytes_per_thread": ("8 KB", "64 KB"),
        "opt-undo.entries_per_record": ("1", "3"),
    },
    "osp": {
        "osp.page_bytes": ("256 B", "1 KB"),
        "osp.shadow_pages": ("64", "2048"),
        "osp.journal_bytes": ("512 B", "16 KB"),
        "osp.checkpoint_percent": ("10", "100"),
        "osp.tlb_entries": ("1", "64"),
        "osp.metadata_cycles": ("0", "200"),
        "osp.flip_cycles": ("0", "20"),
        "osp.shootdown": ("store", "never"),
        "osp.shootdown_cycles": ("0", "5000"),
        "osp.shootdown_wait_cycles": ("0", "5000"),
        "osp.flush_interval_cycles": ("0", "20"),
        "osp.consolidation": ("demand",),
        "osp.copies_in_flight": ("1", "2"),
    },
    "redu": {
        "redu.log_buffer_entries": ("1", "2"),
        "redu.log_queue_entries": ("1", "8"),
        "redu.log_bytes_per_thread": ("4 KB", "8 KB", "64 KB"),
        "redu.victim_lines": ("6", "1024"),
        "redu.victim_read_cycles": ("0", "40"),
        "redu.load_aware_allocation": ("true",),
        "redu.buffered_headers": ("true",),
        "redu.load_aware_allocation+lalea.fle_entries+lalea.fh_entries": (
            "true+96+16",
            "true+256+32",
        ),
        "redu.load_aware_allocation+lalea.chained_transactions": ("true+1", "true+2"),
        "redu.buffered_headers+controller.adr_entries": ("true+2", "true+16"),
    },
    "silo": {
        "silo.log_buffer_entries": ("1", "2", "20"),
        "silo.pm_buffer_lines": ("128",),
        "silo.log_buffer_latency_cycles": ("1", "500"),
        "silo.overflow_batch_entries": ("1", "3", "14"),
        "silo.log_bytes_per_thread": ("4 KB", "8 KB"),
        "silo.log_ignorance": ("false",),
        "silo.acknowledged_after": ("access",),
    },
    "software_log": {
        "software_log.log_bytes_per_thread": ("4 KB", "64 KB"),
        "software_log.write_set_words": ("128", "256"),
        "software_log.search_instructions": ("0", "40"),
        "software_log.bucket_instructions": ("0", "40"),
        "software_log.entry_instructions": ("0", "40"),
        "software_log.insert_instructions": ("0", "40"),
        "software_log.record_instructions": ("0", "40"),
        "software_log.home_instructions": ("0", "40"),
        "software_log.clwb_instructions": ("0", "40"),
        "software_log.head_instructions": ("0", "40"),
    },
}
"""Values of the keys of designs, by section. KEY+KEY stands for keys that are set together."""

DESIGNS_OF_KEYS: dict[str, tuple[str, ...]] = {
    "software_log": ("redo-clwb", "undo-clwb"),
}
"""The designs whose runs vary a section's keys, where it is not the one of the section's name."""

OUT_OF_ORDER: Settings = {"core.model": "out-of-order", "core.issue_width": "4"}
CELLS: Settings = {"pm.cells": "tlc-rram", "pm.codec": "crade"}

MACHINE_KEYS: tuple[tuple[tuple[str, ...], Settings, dict[str, tuple[str, ...]]], ...] = (
    (
        ("fwb", "silo", "undo-clwb"),
        {
            "region.kind": "steady",
            "region.fast_forward_transactions": "400",
            "region.warm_up_transactions": "40",
            "region.transactions_max": "800",
        },
        {
            "region.kind": ("whole",),
            "region.fast_forward_transactions": ("0", "1000"),
            "region.fast_forward_operations": ("3000",),
            "region.warm_up_transactions": ("0", "200"),
            "region.transactions": ("100",),
            "region.transactions_min": ("100",),
            "region.transactions_max": ("300",),
            "region.operations_min": ("3000",),
            "region.operations_max": ("3000",),
            "region.precision_percent": ("1", "50"),
        },
    ),
    (
        ("silo", "undo-clwb"),
        {},
        {
            "core.count": ("2", "5"),
            "core.frequency_mhz": ("1000", "3500"),
            "core.model": ("out-of-order",),
            "core.mshrs": ("1",),
            "core.store_queue_entries": ("1", "2"),
            "l1.bytes": ("1 KB", "4 KB"),
            "l1.ways": ("1", "2"),
            "l1.latency_cycles": ("1", "9"),
            "l2.bytes": ("4 KB", "16 KB"),
            "l2.ways": ("1", "2"),
            "l2.latency_cycles": ("5", "40"),
            "llc.bytes": ("64 KB", "1 MB"),
            "llc.ways": ("2", "8"),
            "llc.latency_cycles": ("13", "80"),
            "controller.channels": ("2", "4"),
            "controller.read_queue_entries": ("1", "4"),
            "controller.write_queue_entries": ("4", "8"),
            "controller.drain_high_percent": ("60", "100"),
            "controller.drain_low_percent": ("0", "70"),
            "controller.adr": ("false",),
            "controller.interleave": ("line",),
            "controller.scheduler": ("frfcfs", "frfcfs-wqf"),
            "controller.age_limit_ns": ("0", "500"),
            "controller.row_hit_limit": ("0", "1"),
            "controller.data_bus": ("at-transfer",),
            "controller.short_bursts": ("true",),
            "controller.channels+controller.interleave": ("4+line",),
            "controller.channels+controller.page_bytes": ("4+1 KB", "2+8 KB"),
            "controller.bypass_cycles": ("0", "40"),
            "pm.capacity_bytes": ("1 GB",),
            "pm.ranks": ("2", "4"),
            "pm.banks": ("1", "16"),
            "pm.row_bytes": ("256 B", "4 KB"),
            "pm.row_hit_ns": ("5.0", "30.0"),
            "pm.column_ns": ("1.0", "15.0"),
            "pm.row_writes": ("activate", "hit-or-conflict", "write-back"),
            "pm.row_writes+pm.buffer_lines": ("hit-or-conflict+0", "write-back+0"),
            "pm.read_ns": ("20.0", "300.0"),
            "pm.precharge_ns": ("10.0", "33.3"),
            "pm.write_ns": ("20.0", "900.0"),
            "pm.burst_ns": ("2.5", "20.0"),
            "pm.buffer_lines": ("0", "1", "8"),
            "pm.buffer_spill_percent": ("1", "100"),
            "pm.buffer_ns": ("1.0", "40.0"),
            "pm.row_read_pj_per_bit": ("1.5",),
            "pm.row_write_pj_per_bit": ("1.5",),
            "pm.array_read_pj_per_bit": ("1.5",),
            "pm.array_write_pj_per_bit": ("1.5",),
            "pm.cells": ("tlc-rram",),
            "pm.codec": ("crade", "slde"),
            "pm.log_region_bytes": ("8 MB",),
            "pm.log_areas": ("one-bank",),
            "processor_energy.instruction_pj": ("7.5",),
            "processor_energy.cache_32kb_word_pj": ("7.5",),
            "statistics.write_distances": ("true",),
            "statistics.bank_load_interval_cycles": ("500",),
        },
    ),
    (
        ("hwl", "lad"),
        OUT_OF_ORDER,
        {
            "core.issue_width": ("1", "2"),
            "core.rob_entries": ("8", "32"),
            "core.load_queue_entries": ("1", "4"),
            "core.store_queue_entries": ("1", "4"),
            "core.mshrs": ("1", "2"),
            "core.threads_per_core": ("2",),
            "controller.adr_entries": ("2", "8"),
        },
    ),
    (
        ("undo-clwb", "redo-clwb"),
        FEATURES["two-threads-out-of-order"],
        {"core.write_combining_lines": ("1", "2", "3")},
    ),
    (
        ("morlog-slde",),
        CELLS,
        {
            "pm.write_scale": ("0.5", "3.0"),
            "pm.expansion": ("false",),
            "pm.codec": ("none", "crade", "slde"),
            "tlc.latency_000_ns": ("55.5",),
            "tlc.latency_001_ns": ("500.5",),
            "tlc.latency_010_ns": ("500.5",),
            "tlc.latency_011_ns": ("500.5",),
            "tlc.latency_100_ns": ("500.5",),
            "tlc.latency_101_ns": ("500.5",),
            "tlc.latency_110_ns": ("500.5",),
            "tlc.latency_111_ns": ("500.5",),
            "tlc.energy_000_pj": ("50.5",),
            "tlc.energy_001_pj": ("50.5",),
            "tlc.energy_010_pj": ("50.5",),
            "tlc.energy_011_pj": ("50.5",),
            "tlc.energy_100_pj": ("50.5",),
            "tlc.energy_101_pj": ("50.5",),
            "tlc.energy_110_pj": ("50.5",),
            "tlc.energy_111_pj": ("50.5",),
            "tlc.wear_group_cells": ("1", "100"),
        },
    ),
    (
        ("lsm", "redo-clwb"),
        {},
        {
            "dram.capacity_bytes": ("8 GB",),
            "dram.banks": ("1", "4"),
            "dram.row_bytes": ("1 KB",),
            "dram.row_hit_ns": ("2.0",),
            "dram.read_ns": ("100.0",),
            "dram.precharge_ns": ("0", "60.0"),
            "dram.write_ns": ("100.0",),
            "dram.burst_ns": ("20.0",),
            "dram.read_queue_entries": ("1",),
            "dram.write_queue_entries": ("4",),
        },
    ),
)
"""Values of the keys of the machine: designs, what is set besides, values by key."""

WORKLOAD_KEYS: tuple[tuple[tuple[str, ...], Settings, dict[str, tuple[str, ...]]], ...] = (
    (
        ("array", "btree", "hash", "queue", "sdg", "ssca2", "vector"),
        {},
        {
            "workload.element_bytes": ("8 B", "200 B", "1 KB"),
            "workload.element_kind": ("string", "equal"),
            "workload.compute_scale": ("0.5", "10.0"),
            "recovery.points": ("2",),
            "recovery.points+recovery.at_percent": ("1+50",),
            "recovery.points+recovery.at_cycle": ("1+5000",),
            "recovery.points+recovery.record_instructions": ("1+100",),
            "recovery.points+recovery.table_instructions": ("1+100",),
            "recovery.points+recovery.comparison_instructions": ("1+100",),
            "workload.insert_percent+workload.update_bytes": ("40+16 B",),
            "workload.footprint_bytes": ("64 KB", "2 MB"),
            "workload.distribution+workload.insert_percent": ("zipf+30",),
            "workload.distribution+workload.zipf_theta+workload.insert_percent": ("zipf+0.5+30",),
            "workload.sharing": ("shared",),
            "workload.sharing+workload.insert_percent": ("shared+50",),
            "workload.insert_percent+workload.remove_percent": ("40+40", "0+50"),
            "workload.operations_per_transaction": ("5",),
        },
    ),
    (("echo",), {}, {"echo.batch_puts": ("1", "20")}),
    (
        ("smallbank",),
        {},
        {
            "smallbank.customers": ("200", "5000"),
            "smallbank.hotspot_customers": ("40",),
            "smallbank.hotspot_percent": ("0", "50"),
            "smallbank.mix": ("original",),
        },
    ),
    (("tatp",), {}, {"tatp.subscribers": ("50", "3000")}),
    (
        ("tpcc",),
        {},
        {
            "tpcc.warehouses": ("2",),
            "tpcc.mix": ("new-order",),
            "tpcc.items": ("100",),
            "tpcc.districts": ("1", "10"),
            "tpcc.customers_per_district": ("100",),
            "tpcc.orders_per_district": ("10",),
        },
    ),
    (
        ("ycsb",),
        {},
        {
            "ycsb.mix": ("a", "b", "c", "d", "e", "f"),
            "ycsb.index": ("btree",),
            "ycsb.requests": ("zipf", "latest", "uniform"),
            "ycsb.mix+ycsb.index+ycsb.scan_records_max": ("e+btree+5",),
        },
    ),
)
"""Values of the keys of workloads: workloads, what is set besides, values by key."""
