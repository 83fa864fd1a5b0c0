package mongo

import (
	"strings"
	"testing"

	"github.com/wirewait/wirewait/internal/testenv"
)

// covered are the things that the protocol must be followed through, and the
// tests that show it: PACKAGE.TEST, where the package is its directory.
var covered = map[string]string{
	"exhaust and streaming hello": `wire/mongo.TestConversation_StreamingHello wire/mongo.TestCaptures_ExhaustHello
		wire/mongo.TestPairing_ExhaustStreamIsOneExchange wire/mongo.TestPairing_MonitorStreamIsQuiet
		internal/lab/mongod.TestMongo_StreamsHello internal/interop/mongodb.TestMatrix proxy.TestFailure_StopDoesNotWaitForMonitors`,
	"tailable and awaitData cursors": `wire/mongo.TestConversation_TailableCursors internal/interop/mongodb.TestMatrix`,
	"bulkWrite (8.0)":                `wire/mongo.TestConversation_BulkWrite wire/mongo.TestReply_Counts wire/mongo.TestRequest_Batch internal/interop.TestPeer_BulkWriteAsTheDriverSendsIt`,
	"transactions: writes marked, the wait at the commit": `wire/mongo.TestConversation_Transaction
		wire/mongo.TestConversation_TransactionWaitsAtItsCommit wire/mongo.TestRequest_WhereTheConcernComesFrom
		internal/interop/mongodb.TestMatrix`,
	"retryable writes":     `wire/mongo.TestConversation_RetriedWrite internal/lab/mongod.TestMongo_RetriedWriteIsDoneOnce`,
	"all read concerns":    `wire/mongo.TestConcern_EveryReadConcern`,
	"all write concerns":   `wire/mongo.TestConcern_EveryWriteConcern wire/mongo.TestConcern_OnlyTheCommandsOwn internal/interop/mongodb.TestMatrix`,
	"legacy opcodes":       `wire/mongo.TestRequest_LegacyOpcodes wire/mongo.TestReply_OfPlainQuery wire/mongo.TestCaptures_LegacyMessages wire/mongo.TestCaptures_EveryStream`,
	"telemetry sections":   `wire/mongo.TestSections_Telemetry wire/mongo.TestRequest_Traceparent wire/mongo.TestSections_Troubles`,
	"48 MB in flat memory": `wire/mongo.TestBig_ConcernBehindAllDocuments wire/mongo.TestBig_CompressedInBoundedMemory internal/interop/mongodb.TestBiggestMessages_FlatMemory`,
	"all compressors both ways": `wire/mongo.TestConversation_MixedCompressors wire/mongo.TestCompressed_WhatCannotBeRead
		wire/mongo.TestCompressed_ConcernBehindTheDocuments wire/mongo.TestCompressed_ConcernBehindTheCut
		internal/interop.TestPeer_Compressors internal/interop/mongodb.TestMatrix`,
	"checksums": `wire/mongo.TestSplit_CutsDoNotMatter wire/mongo.TestConversation_TailableCursors
		internal/lab/mongod.TestMongo_ChecksumIsCheckedAndAnswered internal/interop/mongodb.TestHandshake_ChecksumsStayRight`,
	"pre-auth size limits: no handshake grows": `internal/interop/mongodb.TestHandshake_SameBytes internal/interop/mongodb.TestHandshake_LargestBeforeLogin`,
	"late replies after a client's time-out":   `wire/mongo.TestConversation_LateReply internal/interop/mongodb.TestLateReply_OnTheSameConnection`,
	"what has no reply (w: 0)":                 `wire/mongo.TestPairing_NoReplyIsDoneWhenItHasLeft wire/mongo.TestCompressed_NoReplyIsKnownAfterDecoding internal/interop.TestPeer_UnacknowledgedWrites`,
	"what cannot be read still passes":         `wire/mongo.TestSession_BadHeadersEndFraming wire/mongo.TestSections_UnreadableMessagesStillPair proxy.TestBadInput_PassesAndIsCounted`,
}

// TestRows_NameTestsThatExist: a test that is renamed or removed takes its row
// along.
func TestRows_NameTestsThatExist(t *testing.T) {
	exists := testenv.Tests(t)
	for row, tests := range covered {
		names := strings.Fields(tests)
		if len(names) == 0 {
			t.Errorf("%s: no test", row)
		}
		for _, name := range names {
			if !exists.Has(name) {
				t.Errorf("%s: there is no %s", row, name)
			}
		}
	}
}
