"""Make the screenshots again: `python tests/pictures`."""

import asyncio

from drawing import FOLDER, PICTURES, draw

FOLDER.mkdir(exist_ok=True)
for picture in PICTURES:
    (FOLDER / f"{picture.name}.svg").write_text(asyncio.run(draw(picture)), encoding="utf-8")
    print(f"screenshots/{picture.name}.svg")
