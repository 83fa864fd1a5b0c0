package toxiproxy

import "testing"

// TestDiffers: where wirewait is to answer otherwise, and why.
func TestDiffers(t *testing.T) {
	const (
		dialled = "what can't be dialled is said at once, and not by the first connection"
		later   = "the type came after 2.12.0"
		ours    = "the type is wirewait's own"
		atomic  = "a proxy comes with its toxics, so that no connection escapes them"
	)
	compare(t, []step{proxyA,
		{do: `POST /proxies {"name":"b","listen":"127.0.0.1:0","upstream":"no address at all"}`, ours: 400, differs: dialled},
		{do: `POST /proxies {"name":"c","listen":"127.0.0.1:0","upstream":"localhost"}`, ours: 400, differs: dialled},
		{do: `POST /proxies {"name":"d","listen":"127.0.0.1:0","upstream":"localhost:99999"}`, ours: 400, differs: dialled},
		{do: `GET /`, ours: 200, differs: "wirewait has a page"},
		{do: `POST /proxies/a {"upstream":"no address at all"}`, ours: 400, differs: dialled},
		{do: `POST /proxies/a {"upstream":""}`, ours: 400, differs: dialled},
		{do: `POST /populate [{"name":"e","upstream":"no address at all"}]`, ours: 400, differs: dialled},
		{do: `POST /proxies/a/toxics {"type":"packet_loss","attributes":{"loss_rate":0.1,"correlation":0.5}}`, ours: 200, differs: later},
		{do: `POST /proxies/a/toxics {"type":"lose_reply","attributes":{"match":{"statement":"COMMIT"}}}`, ours: 200, differs: ours},
		{do: `POST /proxies/a/toxics {"type":"refuse","attributes":{"match":"command=insert","code":189,"first":1}}`, ours: 200, differs: ours},
		{do: `POST /proxies/a/toxics {"name":"ttl","type":"latency","attributes":{"latency":1,"ttl":"1h"}}`, ours: 200, differs: ours},
		{do: `GET /proxies/a/toxics/refuse_downstream`, ours: 200, differs: ours},
		{do: `PATCH /proxies/a/toxics/refuse_downstream {"attributes":{"code":91}}`, ours: 200, differs: ours},
		{do: `DELETE /proxies/a/toxics/lose_reply_downstream`, ours: 204, differs: ours},
		{do: `POST /proxies {"name":"with","listen":"127.0.0.1:0","upstream":"{upstream}","toxics":[{"type":"latency","attributes":{"latency":5}}]}`, ours: 201, differs: atomic},
		{do: `POST /populate [{"name":"with2","listen":"127.0.0.1:0","upstream":"{upstream}","toxics":[{"type":"latency","attributes":{"latency":5}}]}]`, ours: 201, differs: atomic},
		{do: `POST /populate [{"name":"with3","listen":"127.0.0.1:0","upstream":"{upstream}","toxics":[{"type":"nothing"}]}]`, ours: 400, differs: atomic},
	})
}

// TestServices: an upstream's port may be a service's name.
func TestServices(t *testing.T) {
	compare(t, []step{{do: `POST /proxies {"name":"e","listen":"127.0.0.1:0","upstream":"localhost:http"}`}})
}
