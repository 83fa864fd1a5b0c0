"""Makes every call of toxiproxy-python: main.py HOST PORT UPSTREAM."""

import json
import sys

from toxiproxy import Toxiproxy

host, port, upstream = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def plain(x):
    if isinstance(x, bytes):
        return x.decode()
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if hasattr(x, "__dict__"):
        return plain(vars(x))
    return x


def said(call, do):
    """Print what a call returned, or how it failed."""
    try:
        got = do()
    except Exception as e:
        print(call, "failed:", type(e).__name__, e)
        return None
    print(call, json.dumps(plain(got), sort_keys=True))
    return got


server = Toxiproxy()
server.update_api_consumer(host, port)
said("running", server.running)
said("version", server.version)
said("proxies", server.proxies)
proxy = said("create", lambda: server.create(name="orders", upstream=upstream))
said("create again", lambda: server.create(name="orders", upstream=upstream))
said("create, disabled", lambda: server.create(name="off", upstream=upstream, listen="127.0.0.1:0", enabled=False))
said("create without an upstream", lambda: server.create(name="x", upstream=""))
said("get_proxy", lambda: server.get_proxy("orders"))
said("get_proxy nobody", lambda: server.get_proxy("nobody"))
said("disable", proxy.disable)
said("enable", proxy.enable)
with proxy.down():
    said("in down", lambda: server.get_proxy("orders"))
said("after down", lambda: server.get_proxy("orders"))

for toxic in (
    {"type": "latency", "attributes": {"latency": 1000, "jitter": 10}},
    {"type": "bandwidth", "stream": "upstream", "toxicity": 0.5, "attributes": {"rate": 100}},
    {"type": "slow_close", "name": "late", "attributes": {"delay": 10}},
    {"type": "timeout", "name": "gone", "toxicity": 0, "attributes": {"timeout": 1000}},
    {"type": "reset_peer", "name": "reset", "toxicity": 0, "attributes": {"timeout": 1000}},
    {"type": "slicer", "name": "pieces", "attributes": {"average_size": 64, "size_variation": 8, "delay": 10}},
    {"type": "limit_data", "name": "short", "toxicity": 0, "attributes": {"bytes": 1024}},
    {"type": "latency"},
    {"type": "nothing"},
    {"type": "latency", "name": "half", "attributes": {"latency": 0.5}},
):
    said("add_toxic " + toxic["type"], lambda: proxy.add_toxic(**toxic))
said("toxics", proxy.toxics)
said("get_toxic", lambda: proxy.get_toxic("late"))
said("get_toxic nobody", lambda: proxy.get_toxic("nobody"))
said("destroy_toxic", lambda: proxy.destroy_toxic("late"))
said("destroy_toxic again", lambda: proxy.destroy_toxic("late"))
said("populate", lambda: server.populate([
    {"name": "orders", "upstream": upstream, "listen": proxy.listen},
    {"name": "stock", "upstream": upstream, "listen": "127.0.0.1:0"},
    {"name": "off", "upstream": "localhost:1", "listen": "127.0.0.1:0"},
]))
said("reset", server.reset)
said("proxies", server.proxies)
said("destroy", lambda: server.destroy(proxy))
said("destroy again", lambda: server.destroy(proxy))
said("destroy_all", server.destroy_all)
said("proxies", server.proxies)
print("done")
