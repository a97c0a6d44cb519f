"""The built-in operators, one module per operator or family. Every module in this folder is loaded with the package,
so that a new operator is one new module, with `@register_op` on its class.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
