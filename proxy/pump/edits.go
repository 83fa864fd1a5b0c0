package pump

import "github.com/wirewait/wirewait/wire"

// edits say where a direction's bytes going out differ from those that the
// session was shown: marks are kept by the latter's offsets.
//
//	shown to the session  ....[request refused].....[reply]......
//	going out             .........................[other one]......
type edits struct {
	tail int64 // bytes that were passed on so far, written or not
	skew int64 // what to add to an offset in them, behind all edits that are written
	all  int64 // the same, behind all there are
	wait wire.Queue[edit]
}

// edit is a stretch going out that stands for one of another length; both may be
// empty.
type edit struct{ from, to, skew int64 }

// replace says that the next n bytes passed on stand for was bytes shown.
func (e *edits) replace(was, n int) {
	e.all += int64(was - n)
	e.wait.Push(edit{e.tail, e.tail + int64(n), e.all})
}

// input is the offset shown, of the byte at an offset going out: of a stretch
// that stands for another its beginning, until all of it is out.
func (e *edits) input(out int64) int64 {
	for e.wait.Len() > 0 && e.wait.Front().to <= out {
		e.skew = e.wait.Pop().skew
	}
	if e.wait.Len() > 0 {
		out = min(out, e.wait.Front().from)
	}
	return out + e.skew
}

// pending reports that something is left out behind the last byte passed on.
func (e *edits) pending() bool { return e.wait.Len() > 0 }
