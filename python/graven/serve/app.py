"""The explorer's pages: what answers each address, and what is refused.

Every answer is made on the server and complete: a page works without scripts, and its address says
all that it shows. Nothing is written, and nothing comes from elsewhere: the policy in each answer
forbids it. Of requests whose `Host` is another's none is answered, so that a page in the same
browser cannot read this one under a name that it has given this address (DNS rebinding).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlencode, urlsplit

from markupsafe import Markup
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from graven import _engine
from graven._engine import ConfigError
from graven.api.loading import simulation_of
from graven.basics.arguments import known
from graven.basics.errors import StoreError
from graven.drawing.pages.page import environment, text
from graven.drawing.pages.simulation import configuration_of, facts_of
from graven.engine.catalogue import catalogue
from graven.results.comparison import METRICS
from graven.results.headings import Headings
from graven.running.progress import duration, percent
from graven.serve.contents import Stock, narrowed
from graven.serve.pictures import DATA, TYPES, Found, charted, encoded, tables_of
from graven.serve.view import ABSOLUTE, OFFERED, View, check_names, choices
from graven.store.keeper import SIMULATION, build
from graven.store.running import running

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PACKAGE = "graven.serve"

FILES = {
    "page.css": ("text/css", "graven.drawing.pages"),
    "tables.js": ("text/javascript", "graven.drawing.pages"),
    "serve.css": ("text/css", PACKAGE),
    "serve.js": ("text/javascript", PACKAGE),
}
"""Files that pages load, with the package that has each."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; "
    "script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""Headers of every answer."""

METHODS = ("GET", "HEAD")

PER_PAGE = 50
"""Results on one page of the list."""

NEWEST = 12
"""Results that the overview shows."""

FILTERS = ("kind", "design", "workload", "machine", "build")
"""Fields that narrow the list of results."""

LONGEST_ADDRESS = 1 << 15
"""Characters of an address; longer ones are refused."""

PAGES = ("/", "/plot", "/results", "/progress")
"""Pages that lead to all others."""


class Absent(Exception):
    """There is nothing at an address; the message says what there is."""


Answer: TypeAlias = Callable[..., Response]


class Explorer:
    """The application, as a server of WSGI calls it."""

    def __init__(self, stock: Stock, hosts: Collection[str] | None = None) -> None:
        """Pages of a store.

        Args:
            stock: What the store has.
            hosts: Names under which requests are answered, whatever their port; any if not given.
        """
        self.stock = stock
        self.hosts = hosts
        self._pages = environment(PACKAGE)
        self._pages.filters.update(
            duration=duration, percent=percent, when=_when, urlencode=urlencode
        )
        pages: dict[str, Answer] = {
            "/": self.overview,
            "/plot": self.plot,
            "/plot.<form>": self.picture,
            "/results": self.results,
            "/results/<digest>": self.result,
            "/progress": self.progress,
            "/files/<name>": self.file,
        }
        self._map = Map(
            [Rule(rule, endpoint=answer, methods=METHODS) for rule, answer in pages.items()],
            strict_slashes=False,
            merge_slashes=False,
        )

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers a request."""
        response = self._answered(Request(environ))
        response.headers.update(HEADERS)
        return response(environ, start_response)

    def _answered(self, request: Request) -> Response:
        try:
            if self.hosts is not None and _name_in(request.host) not in self.hosts:
                raise ConfigError(
                    f"Host: `{request.host}` is not this address, which is called "
                    + " or ".join(sorted(self.hosts))
                )
            if len(request.query_string) > LONGEST_ADDRESS:
                raise ConfigError(
                    f"the address has {len(request.query_string):,} characters after `?`; "
                    f"{LONGEST_ADDRESS:,} are allowed"
                )
            self.stock.refresh()
            found: tuple[Answer, Mapping[str, Any]]
            found = self._map.bind_to_environ(request.environ).match()
            answer, values = found
            return answer(request, **values)
        except ConfigError as error:
            return self._refused(HTTPStatus.BAD_REQUEST, str(error))
        except Absent as error:
            return self._refused(HTTPStatus.NOT_FOUND, str(error))
        except MethodNotAllowed:
            allowed = " and ".join(METHODS)
            refused = self._refused(
                HTTPStatus.METHOD_NOT_ALLOWED, f"{request.method} is not allowed; {allowed} are"
            )
            refused.headers["Allow"] = ", ".join(METHODS)
            return refused
        except HTTPException:
            message = f"there is no page {request.path}; there are {', '.join(PAGES)}"
            return self._refused(HTTPStatus.NOT_FOUND, message)
        except StoreError as error:
            return self._refused(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    def _refused(self, status: HTTPStatus, message: str) -> Response:
        return self._page(
            "error.html", "Refused", status=status, message=message, reason=status.phrase
        )

    def _page(
        self, name: str, title: str, *, status: HTTPStatus = HTTPStatus.OK, **content: object
    ) -> Response:
        content_of_page = self._pages.get_template(name).render(
            title=title,
            folder=self.stock.folder,
            is_there=self.stock.is_there,
            version=_engine.__version__,
            unsafe=catalogue().unsafe_designs(),
            **content,
        )
        return Response(content_of_page, status, content_type="text/html; charset=utf-8")

    # ---- pages -----------------------------------------------------------------------------

    def overview(self, request: Request) -> Response:
        """Shows the numbers of results, and the newest."""
        check_names(request.args, ())
        entries = self.stock.every.entries
        count = self.stock.every.counts
        kinds = count("kind")
        facets = {name: count(name) for name in ("machine", "design", "workload")}
        builds = [(name, number, name == build()) for name, number in count("build").items()]
        return self._page(
            "overview.html",
            "Overview",
            entries=entries[:NEWEST],
            total=len(entries),
            kinds=kinds,
            facets=facets,
            builds=builds,
            commands=running(self.stock.folder),
        )

    def plot(self, request: Request) -> Response:
        """A plot of what the address chooses, with its numbers and what is missing."""
        view = View.of(request.args, self.stock)
        if view is None:
            return self._page("plot.html", "Plot", view=None)
        found = Found.of(view, self.stock)
        problem, tables, status = "", [], HTTPStatus.OK
        if found.entries:
            try:
                drawn = charted(view, found, self.stock)
                tables = tables_of(drawn)
            except ConfigError as error:
                # The form stands beside what is wrong, to be changed.
                problem, status = str(error), HTTPStatus.BAD_REQUEST
        return self._page(
            "plot.html",
            "Plot",
            status=status,
            view=view,
            choices=choices(view, self.stock),
            metrics=_metrics(),
            absolute=ABSOLUTE,
            offered=OFFERED,
            forms=[form for form in TYPES if form != "svg"],
            entries=found.entries,
            missing=found.missing,
            problem=problem,
            tables=tables,
            address=request.host_url.rstrip("/") + "/plot?" + view.query(),
        )

    def picture(self, request: Request, form: str) -> Response:
        """The same plot alone, as a file."""
        if form not in TYPES:
            raise Absent(f"there is no plot.{form}; there are plot.{', plot.'.join(TYPES)}")
        view = View.of(request.args, self.stock)
        if view is None:
            raise ConfigError("there are no simulations to draw")
        content = encoded(charted(view, Found.of(view, self.stock), self.stock), view, form)
        response = Response(content, content_type=f"{TYPES[form]}{_charset(form)}")
        if form != "svg":
            response.headers["Content-Disposition"] = f"attachment; filename={view.kind}.{form}"
        return response

    def results(self, request: Request) -> Response:
        """The list of results, the newest first, narrowed by what the address says."""
        check_names(request.args, (*FILTERS, "page"))
        wanted = {name: text for name in FILTERS if (text := request.args.get(name, "").strip())}
        every = self.stock.every
        for name, value in wanted.items():
            if value not in (there := list(map(str, every.counts(name)))):
                raise known(name, value, there)
        entries = narrowed(every.entries, **wanted)
        pages = max(1, -(-len(entries) // PER_PAGE))
        page = _page_number(request.args.get("page", "1"), pages)
        return self._page(
            "results.html",
            "Results",
            entries=entries[(page - 1) * PER_PAGE : page * PER_PAGE],
            total=len(entries),
            page=page,
            pages=pages,
            wanted=wanted,
            facets={name: every.counts(name) for name in FILTERS},
        )

    def result(self, request: Request, digest: str) -> Response:
        """One result: what was asked for, and what came."""
        check_names(request.args, ())
        entry = self.stock.entry(digest)
        stored = None if entry is None else self.stock.stored(digest)
        if entry is None or stored is None:
            raise Absent(f"there is no result {digest} in {self.stock.folder}")
        content: dict[str, Any] = {"facts": {}}
        if entry.kind == SIMULATION:
            record = simulation_of(stored)
            content = {
                "facts": facts_of(record),
                "groups": Headings.of(record.stats, design=record.simulated).groups,
                "configuration": configuration_of(record),
            }
        else:
            content["whole"] = json.dumps(json.loads(stored.result), indent=2)
        return self._page(
            "result.html",
            f"{entry.design or entry.kind} on {entry.workload}" if entry.workload else entry.kind,
            entry=entry,
            asked=json.dumps(stored.request.asked, indent=2),
            **content,
        )

    def progress(self, request: Request) -> Response:
        """The commands that make results for this store."""
        check_names(request.args, ())
        now = datetime.now(UTC)
        return self._page("progress.html", "Progress", commands=running(self.stock.folder), now=now)

    def file(self, request: Request, name: str) -> Response:
        """A file that pages load."""
        del request
        if name not in FILES:
            raise Absent(f"there is no file {name}; there are {', '.join(FILES)}")
        form, package = FILES[name]
        return Response(text(name, package), content_type=f"{form}; charset=utf-8")


def _name_in(host: str) -> str | None:
    """The name in a `Host` header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _when(moment: str) -> Markup:
    """A moment, to the second."""
    seen = moment[:19].replace("T", " ")
    return Markup('<time datetime="{}">{}</time>').format(moment, seen)


def _charset(form: str) -> str:
    return "; charset=utf-8" if form == DATA else ""


def _metrics() -> dict[str, list[tuple[str, str]]]:
    """Statistics that may be drawn, under headings, with the titles of those that have one."""
    titles = {metric.stat: f"{metric.title} ({metric.stat})" for metric in METRICS}
    found: dict[str, list[tuple[str, str]]] = {"Compared by default": list(titles.items())}
    for item in catalogue().stats:
        if "*" not in item.name and item.name != "image_digest" and item.name not in titles:
            found.setdefault(item.group, []).append((item.name, item.name))
    return found


def _page_number(text: str, pages: int) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    if not 1 <= number <= pages:
        raise ConfigError(f"page: `{text}` is not allowed; 1 to {pages:,} are")
    return number
