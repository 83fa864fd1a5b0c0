package cluster

import "net/url"

// redacted is a connection string that may be shown: without a password.
func redacted(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return "the cluster" // whatever is wrong with it may be the password
	}
	return u.Redacted()
}
