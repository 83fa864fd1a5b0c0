package orders

import (
	"errors"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2/client"
)

// What is new: toxics that know the protocol, by the same client.

// The insert is done, and nobody hears of it.
func TestPlace_LostAcknowledgement(t *testing.T) {
	r := start(t)
	r.toxic(t, "lose_reply", "downstream", toxiproxy.Attributes{"match": map[string]any{"statement": "INSERT"}})
	if err := r.Place(t.Context(), 1, "tea"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("with every acknowledgement lost: %v", err)
	}
	r.wantStored(t, 1)
	if err := r.proxy.RemoveToxic("lose_reply_downstream"); err != nil {
		t.Fatal(err)
	}
	if err := r.Place(t.Context(), 1, "tea"); err != nil {
		t.Error(err)
	}
	r.wantStored(t, 1)
}

// The first two inserts meet a serialization failure, the third doesn't.
func TestPlace_SerializationFailure(t *testing.T) {
	r := start(t)
	r.toxic(t, "refuse", "downstream", toxiproxy.Attributes{
		"match": map[string]any{"statement": "INSERT"}, "code": "40001", "first": 2,
	})
	if err := r.Place(t.Context(), 1, "tea"); err != nil {
		t.Error(err)
	}
	r.wantStored(t, 1)
}

// One that another attempt won't help isn't tried again.
func TestPlace_Refused(t *testing.T) {
	r := start(t)
	r.toxic(t, "refuse", "downstream", toxiproxy.Attributes{
		"match": map[string]any{"statement": "INSERT"}, "code": "42501",
	})
	if err := r.Place(t.Context(), 1, "tea"); err == nil || errors.Is(err, ErrUnavailable) {
		t.Errorf("without the permission to insert: %v", err)
	}
	r.wantStored(t, 0)
}
