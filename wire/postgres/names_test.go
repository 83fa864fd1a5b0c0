package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wirewait/wirewait/wire"
)

// ran wants the statements that the exchanges after the start-up ran.
func ran(t *testing.T, steps []step, want ...string) {
	t.Helper()
	steps = append(hello(), steps...)
	got := run(t, steps...)[1:]
	var texts []string
	for _, x := range got {
		texts = append(texts, x.Statement)
	}
	if fmt.Sprintf("%q", texts) != fmt.Sprintf("%q", want) {
		t.Errorf("ran %q, want %q", texts, want)
	}
	sameInAnyOrder(t, steps)
}

func TestNames_NamedStatementIsFoundAgain(t *testing.T) {
	again := []step{c(bind("", "s1"), execute(""), sync()), s(msg('2'), tag("SELECT 1"), ready('I'))}
	ran(t, append(append([]step{
		c(parse("s1", "SELECT 1"), sync()), s(msg('1'), ready('I')),
	}, again...), again...), "SELECT 1", "SELECT 1")
}

func TestNames_UnnamedIsOverwritten(t *testing.T) {
	ran(t, []step{
		c(pbe("SELECT 1"), pbe("SELECT 2"), sync()),
		s(parsedBound(), tag("SELECT 1"), parsedBound(), tag("SELECT 1"), ready('I')),
		c(bind("", ""), execute(""), sync()), s(msg('2'), tag("SELECT 1"), ready('I')),
	}, "SELECT 1", "SELECT 2", "SELECT 2")
}

func TestNames_ParseOfAnExistingNameFails(t *testing.T) {
	ran(t, []step{
		c(parse("s1", "SELECT 1"), sync()), s(msg('1'), ready('I')),
		c(parse("s1", "SELECT 2"), bind("", "s1"), execute(""), sync()), s(refused("42P05"), ready('I')),
		c(bind("", "s1"), execute(""), sync()), s(msg('2'), tag("SELECT 1"), ready('I')),
	}, "SELECT 2", "SELECT 1")
}

func TestNames_CloseThenParse(t *testing.T) {
	ran(t, []step{
		c(parse("s1", "SELECT 1"), sync()), s(msg('1'), ready('I')),
		c(closeMsg("S", "s1"), parse("s1", "SELECT 2"), bind("", "s1"), execute(""), sync()),
		s(msg('3'), parsedBound(), tag("SELECT 1"), ready('I')),
	}, "SELECT 2")
}

func TestNames_SkippedParseIsNone(t *testing.T) {
	ran(t, []step{
		c(parse("s1", "SELECT 1"), sync()), s(msg('1'), ready('I')),
		c(pbe("nope"), closeMsg("S", "s1"), parse("s1", "SELECT 2"), bind("", "s1"), execute(""), sync()),
		s(refused("42601"), ready('I')),
		c(bind("", "s1"), execute(""), sync()), s(msg('2'), tag("SELECT 1"), ready('I')),
	}, "nope", "SELECT 2", "SELECT 1")
}

func TestNames_DeallocateAndDiscard(t *testing.T) {
	for _, sql := range []string{"DEALLOCATE ALL", "DISCARD ALL", "DEALLOCATE s1", "deallocate prepare s1"} {
		got := sql
		if sql[:3] != "DIS" && sql != "DEALLOCATE ALL" {
			got = "DEALLOCATE"
		}
		ran(t, []step{
			c(parse("s1", "SELECT 1"), sync()), s(msg('1'), ready('I')),
			c(query(sql)), s(tag(got), ready('I')),
			c(bind("", "s1"), execute(""), sync()), s(refused("26000"), ready('I')),
		}, sql, "")
	}
}

func TestNames_SQLPrepareAndExecute(t *testing.T) {
	steps := append(hello(),
		c(query("PREPARE p(int) AS INSERT INTO t VALUES ($1)")), s(tag("PREPARE"), ready('I')),
		c(query("EXECUTE p(1)")), s(tag("INSERT 0 1"), ready('I')),
		c(query("EXECUTE p(2)")), s(refused("23505"), ready('I')),
		c(bind("", "p"), execute(""), sync()), s(msg('2'), tag("INSERT 0 1"), ready('I')))
	got := run(t, steps...)
	wantBriefs(t, got, "startup ok", "PREPARE ok", "INSERT ok write=tag level=/default",
		"EXECUTE error=23505 write=keyword level=/default", "INSERT ok write=tag level=/default")
	if k := got[4].Postgres.Keyword; k != "INSERT" {
		t.Errorf("Bind of a name that SQL prepared ran %q", k)
	}
	// And the other way round.
	ran(t, []step{
		c(parse("s1", "DELETE FROM t"), sync()), s(msg('1'), ready('I')),
		c(query("EXECUTE s1")), s(refused("55P03"), ready('I')),
	}, "EXECUTE s1")
}

func TestNames_CursorIsRunByItsName(t *testing.T) {
	ran(t, []step{
		c(query("BEGIN; DECLARE c1 CURSOR FOR SELECT 1")), s(tag("BEGIN"), tag("DECLARE CURSOR"), ready('T')),
		c(execute("c1"), sync()), s(tag("SELECT 1"), ready('T')),
		c(query("COMMIT")), s(tag("COMMIT"), ready('I')),
		c(execute("c1"), sync()), s(refused("34000"), ready('I')),
	}, "BEGIN", "DECLARE c1 CURSOR FOR SELECT 1", "DECLARE c1 CURSOR FOR SELECT 1", "COMMIT", "")
}

func TestNames_PortalsEndWithTheTransaction(t *testing.T) {
	ran(t, []step{
		c(query("BEGIN")), s(tag("BEGIN"), ready('T')),
		c(parse("", "SELECT 1"), bind("p1", ""), sync()), s(parsedBound(), ready('T')),
		c(execute("p1"), sync()), s(msg('s'), ready('T')),
		c(execute("p1"), sync()), s(tag("SELECT 1"), ready('T')),
		c(query("COMMIT")), s(tag("COMMIT"), ready('I')),
		c(execute("p1"), sync()), s(refused("34000"), ready('I')),
	}, "BEGIN", "SELECT 1", "SELECT 1", "COMMIT", "")
}

func TestNames_AreBounded(t *testing.T) {
	p := newPlayer(t, wire.Options{Text: wire.TextRaw}).play(hello()...)
	sql := "SELECT 1 -- " + strings.Repeat("x", 2000)
	for i := range maxPrepared + 10 {
		p.play(c(parse(fmt.Sprint("s", i), sql), sync()), s(msg('1'), ready('I')))
	}
	inner := p.s.(*session)
	if n := len(inner.statements); n > maxPrepared || len(p.text) != 1 || p.text[0] != "statements" {
		t.Errorf("%d statements, trouble %v", n, p.text)
	}
	total := 0
	for _, st := range inner.statements {
		total += len(st.text)
	}
	if total != inner.kept || total > maxKept {
		t.Errorf("%d bytes of text held, %d counted", total, inner.kept)
	}
}
