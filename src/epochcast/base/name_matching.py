"""Comparing names: case, spaces, punctuation and the vendor's brand do not count.

"NVIDIA Tesla V100-SXM2-16GB" and "v100 sxm2 16gb" are one name; "GTX TITAN X" and "TITAN X" are two.
"""

import re

from epochcast.base.caching import remembered

BRANDS = ("nvidia", "tesla", "geforce", "amd", "radeon", "instinct")


@remembered(4096)
def plain(name: str) -> str:
    """The name as letters and digits only, lower case, without leading brands.

    >>> plain("NVIDIA GeForce GTX 1080 Ti")
    'gtx1080ti'
    """
    text = re.sub(r"[\W_]", "", name.casefold())
    stripped = True
    while stripped:
        stripped = False
        for brand in BRANDS:
            if text.startswith(brand) and text != brand:
                text = text[len(brand) :]
                stripped = True
    return text
