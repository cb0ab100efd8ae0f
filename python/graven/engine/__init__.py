"""The native module as the package sees it, and what it knows by name.

`native` chooses the module, `catalogue` reads its declarations; a `machine`, a `selection` of what
is compared on it, `variants` of designs and a `choice` of all of them are what users ask it for.
"""
