"""Files in and out: the native document and the formats of clusters."""

from kant_opt.io import hived, ibnetdiscover, kubernetes, native, openb, slurm, topograph, writers
from kant_opt.io.files import load_placement, read_text, save, write_atomic
from kant_opt.io.formats import FORMATS, Format, read_request
from kant_opt.io.notes import LeftOutNote, why_left_out
from kant_opt.io.writers import write_placement

__all__ = [
    "FORMATS",
    "Format",
    "LeftOutNote",
    "hived",
    "ibnetdiscover",
    "kubernetes",
    "load_placement",
    "native",
    "openb",
    "read_request",
    "read_text",
    "save",
    "slurm",
    "topograph",
    "why_left_out",
    "write_atomic",
    "write_placement",
    "writers",
]
