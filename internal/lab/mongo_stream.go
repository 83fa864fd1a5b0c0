package lab

import (
	"encoding/binary"
	"net"
	"time"
)

// awaits reports for how long a hello is to wait for a change, if it is one that
// does: it then has the topologyVersion that an earlier one was answered with
// (specifications/source/server-discovery-and-monitoring/server-monitoring.md).
func (m *Mongo) awaits(q *request) (time.Duration, bool) {
	if !m.options.StreamHello || q.Name != "hello" {
		return 0, false
	}
	_, known := q.body.Lookup("topologyVersion").DocumentOK()
	ms, ok := q.body.Lookup("maxAwaitTimeMS").AsInt64OK()
	return time.Duration(ms) * time.Millisecond, known && ok && ms >= 0
}

// stream answers an awaitable hello. Nothing ever changes here, so the answer
// comes when the time is over; and where the client allows it, again and again,
// each as if the answer before had been the request
// (src/mongo/transport/session_workflow.cpp).
func (m *Mongo) stream(c net.Conn, q *request, wait time.Duration) error {
	q.more = q.exhaust && wait > 0
	for {
		if err := pause(m.ctx, wait); err != nil {
			return err
		}
		b, err := m.codec.reply(q, m.answer(q))
		if err == nil {
			_, err = c.Write(b)
		}
		if err != nil || !q.more {
			return err
		}
		q.id = int32(binary.LittleEndian.Uint32(b[4:]))
	}
}
