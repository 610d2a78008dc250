"""An agent with a budget: no tool call of the run passes it, also when many run at once."""

import os
from concurrent.futures import ThreadPoolExecutor

from holdfast import Holdfast, HoldfastError

holdfast = Holdfast(
    api_key=os.environ["HOLDFAST_KEY"],
    base_url=os.environ.get("HOLDFAST_URL", "http://127.0.0.1:8000"),
)
holdfast.subscriptions.upsert("python_agent", "Pro")

with holdfast.run("python_agent", [{"unit": "count", "quota": 5}], name="Five drawings") as run:

    def draw(_: int) -> str:
        try:
            with holdfast.reservation("python_agent", "image.render", run_id=run["runId"]):
                return "drawn"
        except HoldfastError as error:
            return error.code

    with ThreadPoolExecutor(8) as threads:
        results = sorted(threads.map(draw, range(8)))
for result in results:
    print(result)
