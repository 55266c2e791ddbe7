"""Takes some members out of a wheel: unpack_wheel.py WHEEL FOLDER MEMBER=PLACE…

MEMBER ending with a slash stands for all that is below it. PLACE is relative to FOLDER.
"""

import pathlib
import shutil
import sys
import zipfile

wheel, folder, *wanted = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    files = [name for name in archive.namelist() if not name.endswith("/")]
    for pair in wanted:
        member, place = pair.split("=", 1)
        below = member.endswith("/")
        found = [name for name in files if (name.startswith(member) if below else name == member)]
        if not found:
            sys.exit(f"{wheel}: has no {member}")
        for name in found:
            target = pathlib.Path(folder, place + name[len(member) :])
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
