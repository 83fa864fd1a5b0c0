package main

// What the goals ask of wirewait differs by driver where goroutines, a stack and
// a wake-up each, cost what event loops don't.

// eventLoop says whether a driver, or wirewait's default (empty), is one.
func eventLoop(driver string) bool { return driver != "net" }

// by is the goal for goroutines, or that for event loops.
func by(driver string, goroutines, loops float64) float64 {
	if eventLoop(driver) {
		return loops
	}
	return goroutines
}

// pingGoals judges a row of a ping-pong.
func (b *bench) pingGoals(t *Table, x target, conns int) {
	round, work := t.cell(x.name(), "p50 / relay"), t.cell(x.name(), "CPU / relay")
	what := connections(conns) + ", " + x.name()
	switch x.kind {
	case everyWrite, everyMongo:
		b.report.goal("round trip / relay, "+what, round, "x", 1.05, false)
		if conns == 16 {
			b.report.goal("CPU / relay, "+what, work, "x", by(x.driver, 1.5, 1), false)
		}
	case onePercent:
		if conns == 16 {
			b.report.goal("CPU / relay, "+what, work, "x", by(x.driver, 1.25, 0.8), false)
		}
	}
}

// delayGoals judges a row whose columns "median" and "99th" are the errors of
// a delay, in µs.
func (b *bench) delayGoals(t *Table, row, what, driver string) {
	b.report.goal("error of a delay of "+what+", median", t.cell(row, "median"), "µs", by(driver, 150, 100), false)
	b.report.goal("error of a delay of "+what+", 99th", t.cell(row, "99th"), "µs", 1000, false)
}
