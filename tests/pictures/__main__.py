"""Make the screenshots again: `python tests/pictures [NAME...]`."""

import asyncio
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from animation import Svg, frames
from drawing import FOLDER, PICTURES, draw
from report_picture import PICTURE, draw_report

FOLDER.mkdir(exist_ok=True)
names = sys.argv[1:] or [*(picture.name for picture in PICTURES), "demo", "report"]
for picture in [picture for picture in PICTURES if picture.name in names]:
    (FOLDER / f"{picture.name}.svg").write_text(asyncio.run(draw(picture)), encoding="utf-8")
    print(f"screenshots/{picture.name}.svg")
if "report" in names:
    PICTURE.write_bytes(draw_report())
    print("screenshots/report.png")
if "demo" in names:
    (FOLDER / "demo.svg").write_text(Svg(asyncio.run(frames())).text(), encoding="utf-8")
    print("screenshots/demo.svg")
