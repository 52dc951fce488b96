"""Make the fonts of the figures: of DejaVu Sans, as Matplotlib brings it, the letters that figures are written with.

    .venv/bin/python packaging/make_fonts.py

A font is read as a whole before a PDF gets a part of it. DejaVu Sans has over 6,000 glyphs, these have some 600. What
is not in them is taken from the whole one when a figure is drawn.
"""

import shutil
from pathlib import Path

import matplotlib as mpl
from fontTools import subset

FONTS = Path(__file__).parent.parent / "python" / "weft" / "fonts"
STYLES = {"": "Regular", "-Bold": "Bold"}
LETTERS = (
    (0x0020, 0x007E),  # ASCII
    (0x00A0, 0x017F),  # the Latin letters of Europe, micro, times, plus-minus
    (0x0391, 0x03C9),  # Greek
    (0x2010, 0x2026),  # dashes, quotation marks, the ellipsis
    (0x2030, 0x203A),
    (0x2070, 0x208E),  # superscripts and subscripts
    (0x2190, 0x2195),  # arrows
    (0x2202, 0x2265),  # mathematics
)
COPYRIGHT, STYLE, LICENCE = 0, 2, 13
NAMES = {1: "Weft Sans", 4: "Weft Sans {style}", 6: "WeftSans-{style}"}
"""By their number in a font: of the family, whole, and as PostScript has it."""


def main() -> None:
    """Write the fonts and their licence."""
    source = Path(mpl.get_data_path()) / "fonts" / "ttf"
    FONTS.mkdir(exist_ok=True)
    shutil.copyfile(source / "LICENSE_DEJAVU", FONTS / "LICENSE_DEJAVU")
    for suffix, style in STYLES.items():
        # Matplotlib hints by itself: no instructions are needed.
        options = subset.Options(
            hinting=False, layout_features=["kern"], glyph_names=True, name_IDs=[COPYRIGHT, *NAMES, STYLE, LICENCE]
        )
        options.drop_tables += ["FFTM"]
        font = subset.load_font(str(source / f"DejaVuSans{suffix}.ttf"), options)
        font.recalcTimestamp = False
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=[code for first, last in LETTERS for code in range(first, last + 1)])
        subsetter.subset(font)
        for record in font["name"].names:
            if record.nameID in NAMES:
                record.string = NAMES[record.nameID].format(style=style).removesuffix("Regular").rstrip(" -")
        font.save(FONTS / f"WeftSans{suffix}.ttf")


if __name__ == "__main__":
    main()
