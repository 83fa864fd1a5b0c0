package postgres

// names are the prepared statements and portals of a connection. SQL's PREPARE
// and the protocol's Parse share one name space, as DECLARE and Bind do.
type names struct {
	statements map[string]*statement
	portals    map[string]*statement
}

// maxPrepared bounds how many are remembered; beyond it all are forgotten.
const maxPrepared = 10_000

// prepare remembers a statement; full says that all others were forgotten.
func (n *names) prepare(name string, st *statement) (full bool) {
	full = put(&n.statements, name, st)
	return full
}

func (n *names) bind(portal string, st *statement) (full bool) {
	return put(&n.portals, portal, st)
}

func put(m *map[string]*statement, name string, st *statement) (full bool) {
	if *m == nil {
		*m = make(map[string]*statement)
	}
	if len(*m) >= maxPrepared {
		if _, ok := (*m)[name]; !ok {
			clear(*m)
			full = true
		}
	}
	(*m)[name] = st
	return full
}

// endTransaction forgets the portals, but for cursors WITH HOLD.
func (n *names) endTransaction() {
	for name, st := range n.portals {
		if st == nil || !st.hold {
			delete(n.portals, name)
		}
	}
}
