package postgres

// Large objects are written by functions, which libpq and JDBC call by
// FunctionCall and people by SELECT: neither answers with the tag of a write.
// Their OIDs are fixed (src/include/catalog/pg_proc.dat; the same in 15, 17 and
// 18). What other functions do can't be told from here.

// loWriters are those that change data. lo_open doesn't, in whatever mode.
var loWriters = map[string]bool{
	"lo_creat": true, "lo_create": true, "lo_from_bytea": true, "lo_import": true, "lo_put": true,
	"lo_truncate": true, "lo_truncate64": true, "lo_unlink": true, "lowrite": true,
}

// loFunctions are the same by OID, as statements that FunctionCall runs.
var loFunctions = func() map[int32]*statement {
	m := map[int32]*statement{}
	for oid, name := range map[int32]string{
		715: "lo_create", 764: "lo_import", 767: "lo_import", 955: "lowrite", 957: "lo_creat", 964: "lo_unlink",
		1004: "lo_truncate", 3172: "lo_truncate64", 3457: "lo_from_bytea", 3460: "lo_put",
	} {
		m[oid] = &statement{summary: "function_call " + name, writes: true, hides: true, function: true}
	}
	return m
}()

// maxLoWriter is the length of the longest of those names.
const maxLoWriter = len("lo_truncate64")

// writesLargeObject reports whether a word is the name of such a function.
func (p *parser) writesLargeObject(t token) bool {
	b := p.text[t.start:t.end]
	if t.kind != tokenWord || len(b) < 2 || len(b) > maxLoWriter || b[0]|0x20 != 'l' || b[1]|0x20 != 'o' {
		return false
	}
	return loWriters[foldASCII(b)]
}
