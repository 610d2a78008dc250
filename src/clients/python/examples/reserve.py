"""Holds quota before work and commits what was used: run with HOLDFAST_KEY and HOLDFAST_URL."""

import os

from holdfast import Holdfast, HoldfastError

holdfast = Holdfast(
    api_key=os.environ["HOLDFAST_KEY"],
    base_url=os.environ.get("HOLDFAST_URL", "http://127.0.0.1:8000"),
)
holdfast.subscriptions.upsert("python_demo", "Pro")

with holdfast.reservation("python_demo", "image.render", count=2) as work:
    images = ["a pond", "a frog"]
    work.actual = {"count": len(images)}
assert work.commit is not None
group = work.commit["groups"][0]
print(f"committed: {group['current']:g} of {group['quota']:g} images")

try:
    with holdfast.reservation("python_demo", "image.render"):
        raise RuntimeError("nothing to draw")
except RuntimeError as error:
    print(f"released: {error}")

try:
    with holdfast.reservation("python_demo", "image.render", count=1000):
        print("this is not reached")
except HoldfastError as error:
    print(f"refused: {error.code}")
