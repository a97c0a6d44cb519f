"""Tests of epochcast; a package, since libraries install packages of this name, too (gpuhunt does)."""
