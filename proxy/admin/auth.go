package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// authorize lets a request through only with the token, as RFC 6750 has it:
// Authorization: Bearer TOKEN. Without a token everybody may.
func authorize(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(given))) // of one length, whatever was sent
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="wirewait"`)
			writeJSON(w, http.StatusUnauthorized, Refusal{[]string{
				"the token is missing or wrong: send Authorization: Bearer TOKEN (the wirewait commands take --admin-token-file, or WIREWAIT_ADMIN_TOKEN)"}})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// errOpen is what Start says of an address that others can reach.
var errOpen = errors.New("whoever reaches this address could change delays and cut connections: give a token (--admin-token-file FILE, or WIREWAIT_ADMIN_TOKEN), or listen on 127.0.0.1")

// checkToken refuses an address beyond this machine without a token.
func checkToken(host, token string) error {
	if token != "" || strings.EqualFold(host, "localhost") {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return errOpen
}

// Loopback reports whether an admin address can be reached from this machine
// only, so that it needs no token.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && checkToken(host, "") == nil
}
