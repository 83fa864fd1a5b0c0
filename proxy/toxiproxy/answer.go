package toxiproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/wirewait/wirewait/proxy"
)

// apiError is a refusal. The texts and codes are Toxiproxy's (api.go), and clients
// tell them apart.
type apiError struct {
	Message string `json:"error"`
	Status  int    `json:"status"`
}

func (e *apiError) Error() string { return e.Message }

var (
	errProxyNotFound       = &apiError{"proxy not found", http.StatusNotFound}
	errProxyExists         = &apiError{"proxy already exists", http.StatusConflict}
	errStream              = &apiError{"stream was invalid, can be either upstream or downstream", http.StatusBadRequest}
	errToxicType           = &apiError{"invalid toxic type", http.StatusBadRequest}
	errToxicExists         = &apiError{"toxic already exists", http.StatusConflict}
	errToxicNotFound       = &apiError{"toxic not found", http.StatusNotFound}
	errTooLarge            = &apiError{"bad request body: it is larger than 4 MiB: send less at a time", http.StatusBadRequest}
	maxBody          int64 = 4 << 20
)

func badBody(err error) *apiError {
	return &apiError{"bad request body: " + decoderText(err), http.StatusBadRequest}
}

func missing(field string) *apiError {
	return &apiError{"missing required field: " + field, http.StatusBadRequest}
}

// bad refuses a value with what to write instead.
func bad(format string, args ...any) *apiError {
	return &apiError{fmt.Sprintf(format, args...), http.StatusBadRequest}
}

// decoderText is the decoder's own text. Toxiproxy's types begin with a capital.
func decoderText(err error) string {
	if e := (*json.UnmarshalTypeError)(nil); errors.As(err, &e) && e.Struct != "" {
		e.Struct = strings.ToUpper(e.Struct[:1]) + e.Struct[1:]
	}
	return err.Error()
}

// asAPIError is how an error is answered: those of the system are 500s.
func asAPIError(err error) *apiError {
	if e := (*apiError)(nil); errors.As(err, &e) {
		return e
	}
	if errors.Is(err, proxy.ErrNoLink) {
		return errProxyNotFound
	}
	return &apiError{err.Error(), http.StatusInternalServerError}
}

// writeError answers as Toxiproxy does: JSON that is called plain text.
func writeError(w http.ResponseWriter, err error) {
	e := asAPIError(err)
	text, _ := json.Marshal(e)
	http.Error(w, string(text), e.Status)
}

// write answers with JSON, compact and without a line's end.
func write(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // whoever asked has gone
}

// body is all that was sent, whatever it says that it is.
func (c *call) body() ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, badBody(err)
	}
	return b, nil
}

// decode reads the first JSON value; what is behind it is ignored.
func decode(text []byte, v any) error {
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(v); err != nil {
		return badBody(err)
	}
	return nil
}

// Answers that aren't 200 with JSON. created is 201 with what is in it.
type (
	nothing struct{} // 204
	created struct{ v any }
	text    struct{ contentType, text string }
	// failed is a refusal that has more to say than an apiError.
	failed struct {
		status int
		v      any
	}
)

// reply writes what a handler returned.
func reply(w http.ResponseWriter, v any, err error) {
	switch v := v.(type) {
	case nil:
		writeError(w, err)
	case nothing:
		w.WriteHeader(http.StatusNoContent)
	case created:
		write(w, http.StatusCreated, v.v)
	case failed:
		write(w, v.status, v.v)
	case text:
		w.Header().Set("Content-Type", v.contentType)
		_, _ = io.WriteString(w, v.text)
	default:
		write(w, http.StatusOK, v)
	}
}

func (a *API) showVersion(*call) (any, error) {
	return text{"application/json;charset=utf-8", fmt.Sprintf("{\"version\": \"%s\"}\n", a.version)}, nil
}
