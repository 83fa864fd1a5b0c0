package wire

import "testing"

// A report is told once its bytes have left and its contents were read, in
// whichever order, with the stamp of the departure.
func TestReport_IsToldOnceReadAndLeft(t *testing.T) {
	for _, readFirst := range []bool{true, false} {
		o := NewOpen(Postgres)
		var told []*Report
		o.Report = func(r *Report) { told = append(told, r) }
		r := o.NewReport(ReportReached, 10)
		o.MarkReport(r, ToServer, 39)
		if readFirst {
			o.ReadReport(r)
		}
		o.Departed(ToServer, 38, 40)
		if len(told) != 0 {
			t.Fatal("told before its last byte left")
		}
		o.Departed(ToServer, 39, 50)
		if !readFirst {
			if len(told) != 0 {
				t.Fatal("told before it was read")
			}
			o.ReadReport(r)
		}
		if len(told) != 1 || told[0] != r || r.In != 10 || r.Out != 50 {
			t.Fatalf("read first %v: told %v, %+v", readFirst, told, r)
		}
	}
}

func TestReport_ThatNeverLeavesOrSaysNothingIsNotTold(t *testing.T) {
	o := NewOpen(Postgres)
	o.Report = func(r *Report) { t.Errorf("told %+v", r) }
	lost, empty := o.NewReport(ReportReached, 1), o.NewReport(ReportSent, 1)
	o.MarkReport(empty, ToServer, 10)
	o.DropReport(empty)
	o.MarkReport(lost, ToServer, 20)
	o.ReadReport(lost)
	o.Departed(ToServer, 10, 5)
	o.Abandon(ToServer)
}

func TestOver_TellsOnceThatTheMemberLeft(t *testing.T) {
	o := NewOpen(Postgres)
	var told []Report
	o.Report = func(r *Report) { told = append(told, *r) }
	o.Over(5) // of a connection that replicates nothing
	o.Leave(&Report{Kind: ReportLeft, Member: "s1"})
	o.Over(7)
	o.Over(9)
	if len(told) != 1 || told[0].Out != 7 || told[0].Member != "s1" {
		t.Errorf("%+v", told)
	}
}

func TestPosition_IsOrderedByTermThenTimestamp(t *testing.T) {
	ordered := []Position{{}, {0, 1}, LSN(0x68B570), {1, 0}, {1, 1 << 63}, {2, 3}}
	for i, p := range ordered {
		for j, q := range ordered {
			if got := p.Compare(q); got != sign(i-j) || p.Reaches(q) != (i >= j) {
				t.Errorf("%v to %v: %d", p, q, got)
			}
		}
	}
	if s := LSN(0x1_0068B570).LSN(); s != "1/68B570" {
		t.Errorf("printed as %s", s)
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
