package mongo

import "github.com/wirewait/wirewait/wire"

// newReport begins the report of a message whose first byte came at now, on a
// connection between members.
func (s *session) newReport(now wire.Stamp) *wire.Report {
	if !s.between || !s.open.WantsReports() {
		return nil
	}
	return s.open.NewReport(wire.ReportReached, now)
}

// endReport tells what a decoded message said, or that it said nothing.
func (s *session) endReport(dir wire.Direction, f *framed, b *body) {
	r, said := f.report, false
	switch {
	case dir == wire.ToClient && s.reply.oplog && (b.trouble != "" || b.op == 0):
		// Entries may have passed that nobody saw.
		r.Kind, r.Blind, r.Set, said = wire.ReportSent, true, &wire.SetReport{}, true
	case b.trouble != "":
	case dir == wire.ToServer:
		said = s.request.report(r)
	default:
		said = s.reply.report(r)
	}
	if said {
		s.open.ReadReport(r)
	} else {
		s.open.DropReport(r)
	}
}

// report fills in what a request said; false: nothing.
func (r *request) report(to *wire.Report) bool {
	switch r.x.Operation {
	case "replSetUpdatePosition":
		r.endMember()
		to.Set, to.Reached = &wire.SetReport{}, r.list
		return len(r.list) > 0
	case "replSetHeartbeat":
		r.call.from = r.from
		to.Set = &wire.SetReport{
			Client: r.from, ClientHost: r.host, Primary: r.primary,
			IsPrimary: r.primary != "" && r.primary == r.from, Version: max(r.configVersion, 0),
		}
		return r.from != ""
	}
	return false
}

// report fills in what a reply said; false: nothing.
func (r *reply) report(to *wire.Report) bool {
	switch {
	case r.oplog && !r.sent.IsZero():
		to.Kind, to.Sent, to.Set = wire.ReportSent, r.sent, &wire.SetReport{}
		return true
	case r.heartbeat && r.ok:
		r.about.reached[wire.Applied] = r.opTime
		to.Reached = []wire.Progress{r.about.progress()}
		to.Set = &wire.SetReport{
			ToClient: true, Client: r.call.from, Primary: r.primary, SyncSource: r.syncSource,
			IsPrimary: r.state == statePrimary,
		}
		return true
	}
	return false
}
