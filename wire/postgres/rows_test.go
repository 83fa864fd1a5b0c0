package postgres_test

import (
	"strings"
	"testing"

	"github.com/wirewait/wirewait/internal/testenv"
)

// factRow is something that the protocol does, what is asserted of it, and the
// tests that do: TEST of this package or DIRECTORY.TEST, and perhaps /ROW, a name
// that stands in the test. Those below proxy and internal/interop have a real server.
type factRow struct {
	fact, asserted string
	tests          tests
}

type tests []string

// protocolFacts are those of https://www.postgresql.org/docs/current/protocol.html that
// the rest of this package stands on, by section, with what servers were seen to
// do where it says nothing.
var protocolFacts = map[string][]factRow{
	"1.1 First bytes of a connection": {
		{"StartupMessage of any 3.x", "framed, the session is followed", tests{
			"TestStartup_AnyVersionIsFramed",
		}},
		{"at most 10,000 bytes", "one byte more ends framing, and bytes pass", tests{
			"TestMalformed_EndsFramingBothWays/start-up too long", "proxy.TestBadInput_PassesAndIsCounted",
		}},
		{"CancelRequest", "no answer, no delay, keys of both lengths, the statement ends with 57014", tests{
			"TestStartup_CancelIsUrgentAndUnanswered", "proxy.TestPostgres_CancelByKey",
			"proxy.TestPsql_CancelUnderDelay",
		}},
		{"SSLRequest: S, N, or an old server's E", "the answer is one byte; S makes the rest opaque, E is an error", tests{
			"TestStartup_EncryptionRefused/ssl", "TestStartup_EncryptionIsSaidAndOpaque/ssl accepted",
			"TestStartup_ErrorInsteadOfAnAnswer", "proxy.TestPsql_TLS",
		}},
		{"GSSENCRequest: G or N", "the answer is one byte, the server's own; G makes the rest opaque", tests{
			"TestStartup_EncryptionRefused/gss", "TestStartup_EncryptionIsSaidAndOpaque/gss accepted",
			"proxy.TestPostgres_GSSThenSSL/passed on",
		}},
		{"GSSENCRequest, N, SSLRequest, and the reverse", "each is answered, the session works, writes are traced", tests{
			"TestStartup_EncryptionRefused/gss, then ssl", "TestStartup_EncryptionRefused/ssl, then gss",
			"proxy.TestPostgres_GSSThenSSL/GSS, then SSL", "proxy.TestPostgres_GSSThenSSL/SSL, then GSS",
		}},
		{"bytes behind an SSLRequest before its answer", "the server gets them after the answer; nothing is lost", tests{
			"proxy.TestPostgres_BytesBehindAnSSLRequest",
		}},
		{"direct TLS, unknown to 15 and 16", "dropped as directly; counted as encrypted", tests{
			"proxy.TestPostgres_DirectTLSThatTheServerDoesNotKnow",
		}},
		{"direct TLS, 17 and later, ALPN postgresql", "works where the proxy terminates TLS", tests{
			"proxy.TestTLS_Direct", "proxy.TestTLS_DirectTLSToAnUpstreamThatWantsSSLRequest",
		}},
	},
	"1.2 Versions": {
		{"3.0: a key of 4 bytes", "the same answers as directly, the write traced", tests{
			"proxy.TestPostgres_Versions/3.0",
		}},
		{"3.1 and 3.2 on servers before 18: NegotiateProtocolVersion first", "the same answers as directly, the write traced", tests{
			"proxy.TestPostgres_Versions/3.1", "proxy.TestPostgres_Versions/3.2",
		}},
		{"3.2 on 18: a key of 32 bytes", "read, and clients that ask for it get it through a link", tests{
			"TestStartup_AnyVersionIsFramed", "internal/interop/postgres.TestNewerServers",
		}},
		{"3.9999 with an unknown option (grease)", "the same answers as directly", tests{
			"proxy.TestPostgres_Versions/3.9999 and an option",
		}},
		{"3.0 with an unknown option", "the same answers as directly", tests{"proxy.TestPostgres_Versions/3.0 and an option"}},
		{"4.0: FATAL 0A000 and the end", "the same answers as directly; the start-up failed", tests{
			"TestStartup_UnsupportedVersionEndsWithFatal", "proxy.TestPostgres_Versions/4.0",
		}},
	},
	"1.3 Start-up parameters": {
		{"user, database, application_name, replication", "on the exchanges' peer", tests{
			"TestStartup_Parameters/user alone", "TestStartup_Parameters/database",
			"TestStartup_Parameters/logical replication",
		}},
		{"synchronous_commit by name and in options, in all its forms", "it is the level of the first write", tests{
			"TestStartup_Parameters/options -c", "TestStartup_Parameters/options --name",
			"proxy.TestPostgres_StartupParameters/--synchronous-commit=remote_write",
		}},
		{"a bad value: FATAL 22023; an unknown setting: FATAL 42704", "the same as directly", tests{
			"proxy.TestPostgres_StartupParameters/E(FATAL 22023)",
			"proxy.TestPostgres_StartupParameters/E(FATAL 42704)",
		}},
		{"ParameterStatus of application_name", "it is that of later exchanges", tests{
			"TestStartup_ApplicationChanges", "proxy.TestPostgres_Asynchronous",
		}},
		{"none of synchronous_commit", "SET, SET LOCAL, RESET, set_config and UPDATE pg_settings are followed by their text", tests{
			"TestLevels/SET LOCAL until COMMIT", "TestLevels/set_config", "TestLevels/pg_settings",
		}},
	},
	"1.4 Authentication": {
		{"all requests; the answer is always p", "the session is followed through each, answers are never read", tests{
			"TestStartup_EveryAuthentication", "TestStartup_RefusedAndPasswords", "proxy.TestTLS_ChannelBinding",
		}},
	},
	"1.5 Types of messages": {
		{"every type, by direction", "framed; any other byte ends framing", tests{"TestMessages_EveryType"}},
		{"lengths below 4 and above 1 GiB", "end framing; the server ends the session", tests{
			"TestMalformed_EndsFramingBothWays/length 3", "TestMalformed_EndsFramingBothWays/length 0x7fffffff",
			"proxy.TestPostgres_Misuse/Sync of 2 GiB", "proxy.TestPostgres_Misuse/Query of length 3",
		}},
		{"an unknown type: FATAL 08P01", "ends framing; the server ends the session", tests{
			"TestMalformed_EndsFramingBothWays/unknown type", "proxy.TestPostgres_Misuse/an unknown type",
		}},
		{"a Query without NUL or body: ERROR 08P01, the session goes on", "counted, and what follows is paired", tests{
			"TestMessages_ABodyThatIsNone/a Query without its NUL",
			"TestMessages_ABodyThatIsNone/a Query without a body", "proxy.TestPostgres_Misuse/a Query without its NUL",
			"proxy.TestPostgres_Misuse/a Query without a body",
		}},
		{"big messages", "cut at 64 KiB, the rest steps by, memory is flat", tests{
			"TestBig_StatementIsCutAndTheRestStepsBy", "proxy.TestCopy_FlatMemoryBothWays",
		}},
	},
	"1.6 Bodies": {
		{"Parse, Bind, Execute, Close, Describe", "names lead to the statement", tests{
			"TestNames_NamedStatementIsFoundAgain", "TestNames_CloseThenParse", "TestCodec_NothingPanics",
		}},
		{"command tags", "which are writes, by tag", tests{
			"TestWrites_ByTag", "TestCaptures_TagsAndErrors",
		}},
		{"END answers COMMIT", "it is the COMMIT of its block", tests{"TestWrites_Blocks/END"}},
		{"COMMIT of a failed block answers ROLLBACK", "no write", tests{
			"TestWrites_Blocks/failed", "proxy.TestPostgres_Pipelines/COMMIT of a failed block",
		}},
		{"WITH (INSERT ...) SELECT answers SELECT; EXPLAIN ANALYZE answers EXPLAIN", "the first is a write by its words, the second none", tests{
			"TestWrites_ByTag/EXPLAIN ANALYZE INSERT INTO t VALUES (1)",
			"proxy.TestPostgres_NamesAndFunctions/what a SELECT's tag hides",
		}},
		{"an SQL EXECUTE answers the inner tag", "a write by that", tests{"TestNames_SQLPrepareAndExecute"}},
		{"ReadyForQuery after COMMIT AND CHAIN says T", "what follows is in a block", tests{
			"TestWrites_Blocks/COMMIT AND CHAIN goes on", "proxy.TestPostgres_Pipelines/COMMIT AND CHAIN",
		}},
		{"fields of errors and notices, known or not", "the SQLSTATE is found", tests{
			"TestMessages_FieldsOfAnError", "TestWrites_NotReplicated",
		}},
	},
	"1.7 Statements, portals, Execute": {
		{"unnamed ones are overwritten", "each Execute has its own text", tests{
			"TestNames_UnnamedIsOverwritten",
		}},
		{"Parse of an existing name: 42P05; Close, then Parse", "the old one stays; the new one counts", tests{
			"TestNames_ParseOfAnExistingNameFails", "TestNames_CloseThenParse",
			"proxy.TestPostgres_NamesAndFunctions/protocol Parse, SQL EXECUTE",
		}},
		{"DEALLOCATE, DEALLOCATE ALL, DISCARD ALL remove the protocol's statements", "26000 afterwards, and no text", tests{
			"TestNames_DeallocateAndDiscard", "proxy.TestPostgres_NamesAndFunctions/DEALLOCATE ALL",
		}},
		{"SQL PREPARE is run by Bind, and Parse by SQL EXECUTE", "the text of either is found", tests{
			"TestNames_SQLPrepareAndExecute", "proxy.TestPostgres_NamesAndFunctions/SQL PREPARE, protocol Bind",
			"proxy.TestPostgres_NamesAndFunctions/protocol Parse, SQL EXECUTE",
		}},
		{"a cursor is run by Execute, without a Bind", "its text is found", tests{
			"TestNames_CursorIsRunByItsName", "proxy.TestPostgres_NamesAndFunctions/a DECLARE CURSOR run by Execute",
		}},
		{"portals end with the transaction unless held", "34000 afterwards; a held one is found", tests{
			"TestNames_PortalsEndWithTheTransaction", "TestNames_HeldCursorOutlivesTheTransaction",
			"proxy.TestPostgres_Pipelines/portals with row limits in a block",
		}},
		{"names that drivers use", "pgx, psycopg, asyncpg, JDBC and pg do the same as directly", tests{
			"internal/interop/postgres.TestPgx", "internal/interop/postgres.TestPsycopg",
			"internal/interop/postgres.TestAsyncpg", "internal/interop/postgres.TestJDBC",
			"internal/interop/postgres.TestNodePostgres", "internal/interop/postgres.TestPgxSuite",
		}},
	},
	"1.8 Pipelining and ReadyForQuery": {
		twice("P B E S", "one write, whose wait ends with ReadyForQuery"),
		twice("P B E H, later S", "one write, whose result comes before the ReadyForQuery that ends it"),
		{"BEGIN, INSERT, COMMIT in one pipeline, H, S", "the COMMIT ends with its own result", tests{
			"TestPairing_Pipelines/BEGIN, INSERT, COMMIT, H, S",
			"TestStamps/COMMIT ends with its result, and so do those within the block",
			"proxy.TestPostgres_Pipelines/BEGIN, INSERT, COMMIT in one pipeline, H, S",
		}},
		twice("PBE S PBE S", "two writes that share nothing"),
		{"PBE, PBE(bad), PBE, S", "one error; what came before is rolled back, what comes after is skipped", tests{
			"TestPairing_Pipelines/PBE, PBE(bad), PBE, S", "TestRolledBack/a later statement fails",
			"proxy.TestPostgres_Pipelines/PBE, PBE(bad), PBE, S",
		}},
		twice("PBE(bad), Q, S", "the Query is skipped and has no ReadyForQuery"),
		{"PBE(bad), FunctionCall, S", "the call is skipped and has no ReadyForQuery", tests{
			"TestPairing_Pipelines/PBE(bad), function call, S",
			"proxy.TestPostgres_Pipelines/PBE(bad), FunctionCall, S",
		}},
		twice("PBE (no S), Q", "one ReadyForQuery"),
		{"PBE(insert) (no S), Q, S", "15 says I twice, 18 says T and I; both are paired", tests{
			"TestPairing_Pipelines/PBE(insert) (no S), Q, S",
			"TestPairing_Pipelines/PBE(insert) (no S), Q, S on PostgreSQL 18",
			"proxy.TestPostgres_Pipelines/PBE(insert) (no S), Q, S",
		}},
		{"PBE(COPY FROM STDIN) S, then d c S", "the first Sync is swallowed", tests{
			"TestPairing_Pipelines/PBE(COPY) S, then d c S",
			"proxy.TestPostgres_Pipelines/PBE(COPY FROM STDIN) S, then d c S",
		}},
		twice("Q(COPY) then d H S c", "Flush and Sync within COPY have no answer"),
		twice("Q(COPY) with a bad row, then more d, c", "they belong to nothing"),
		{"CopyFail", "57014, no write", tests{
			"TestPairing_Pipelines/Q(COPY), CopyFail", "proxy.TestPostgres_Pipelines/CopyFail",
		}},
		twice("Q(COPY) then Q", "two errors, the end"),
		{"stray d and c outside COPY", "they have no answer", tests{
			"TestPairing_Pipelines/stray d and c", "proxy.TestPostgres_Pipelines/stray d and c outside COPY",
		}},
		{"Execute with max rows", "PortalSuspended is a result, an INSERT's by its words", tests{
			"TestPairing_Pipelines/Execute with a row limit", "proxy.TestPostgres_Pipelines/Execute with max rows",
			"proxy.TestPostgres_Pipelines/an INSERT RETURNING by rows", "proxy.TestPostgres_100_000RowResults",
		}},
		{"an empty Query or statement", "I is its result", tests{
			"TestPairing_Pipelines/an empty query", "TestPairing_Pipelines/an empty statement",
			"proxy.TestPostgres_Pipelines/Q of nothing", "proxy.TestPostgres_Pipelines/PBE of nothing",
		}},
		{"FunctionCall", "paired; those that write large objects are writes", tests{
			"TestPairing_Pipelines/function call", "TestWrites_LargeObjects",
			"proxy.TestPostgres_NamesAndFunctions/FunctionCall",
		}},
		{"the commit fails at Sync", "its writes are rolled back", tests{
			"TestRolledBack/the commit fails", "proxy.TestPostgres_Pipelines/the commit fails at Sync",
		}},
		{"N, A, S and FATAL at any time", "they belong to the reply under way, if any", tests{
			"TestPairing_Pipelines/asynchronous messages", "TestPairing_Pipelines/FATAL while idle",
			"proxy.TestPostgres_Asynchronous", "proxy.TestPsql_ListenAndNotify",
		}},
		{"10,000 statements in one pipeline", "each has its result, all share one commit", tests{
			"TestPairing_LongPipelineAndCopy", "TestMemory_150_000StatementsInAPipeline",
			"proxy.TestPostgres_10_000StatementsInOnePipeline", "internal/interop/postgres.TestPgxSuite",
		}},
	},
	"1.9 Losing and keeping the thread": {
		{"encryption that is not ours to undo", "opaque, said once, counted", tests{
			"TestStartup_EncryptionIsSaidAndOpaque", "proxy.TestPsql_TLS", "proxy.TestBadInput_TLSIsSaidOnce",
		}},
		{"joined in mid-stream", "read from a message's boundary on; else opaque", tests{
			"TestLevels_JoinedInMidStreamIsUnknown", "TestMalformed_EndsFramingBothWays/server joined mid-data",
		}},
		{"a bad length or type", "opaque for good, in both directions, bytes pass", tests{
			"TestMalformed_EndsFramingBothWays", "proxy.TestBadInput_PassesAndIsCounted",
		}},
		{"a second start-up", "opaque", tests{"TestMalformed_EndsFramingBothWays/a second start-up"}},
		{"a body that can't be read", "framing goes on", tests{"TestMessages_ABodyThatIsNone"}},
		{"any cut, any order of the two directions", "the same exchanges", tests{
			"TestCapturesInAnyOrder", "TestConversations_AtRandom",
		}},
		{"physical replication", "passes, its data belongs to no exchange", tests{
			"TestPairing_ReplicationStream", "internal/interop/postgres.TestReceivewal",
		}},
		{"logical replication", "passes, its data belongs to no exchange; the same changes arrive", tests{
			"TestPairing_LogicalReplication", "internal/interop/postgres.TestRecvlogical",
			"internal/interop/postgres.TestSubscription",
		}},
		{"pg_basebackup", "the same files and checksums", tests{
			"TestPairing_BaseBackup", "internal/interop/postgres.TestBasebackup",
		}},
		{"COPY of a gigabyte", "memory is flat (make copy; 200 MB in make test)", tests{
			"proxy.TestCopy_FlatMemoryBothWays",
		}},
	},
}

// twice is a conversation that is played to a session and with a server, under
// the same name.
func twice(name, asserted string) factRow {
	return factRow{name, asserted, tests{"TestPairing_Pipelines/" + name, "proxy.TestPostgres_Pipelines/" + name}}
}

// TestRows_NameTestsThatExist: a test that is renamed or removed takes its row
// along.
func TestRows_NameTestsThatExist(t *testing.T) {
	exists := testenv.Tests(t)
	rows := 0
	for section, facts := range protocolFacts {
		for _, row := range facts {
			rows++
			if row.fact == "" || row.asserted == "" || len(row.tests) == 0 {
				t.Errorf("%s: %+v is not all of a row", section, row)
			}
			for _, name := range row.tests {
				if strings.HasPrefix(name, "Test") {
					name = "wire/postgres." + name
				}
				if !exists.Has(name) {
					t.Errorf("%s, %s: there is no %s", section, row.fact, name)
				}
			}
		}
	}
	if len(protocolFacts) != 9 || rows < 60 {
		t.Errorf("%d sections, %d rows", len(protocolFacts), rows)
	}
}
