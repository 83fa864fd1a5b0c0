package otlp

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// The environment decides where traces go. These are OpenTelemetry's own
// variables and nothing is added to them:
//
//	OTEL_SDK_DISABLED=true        nothing
//	OTEL_TRACES_EXPORTER          otlp, console or none
//	OTEL_EXPORTER_OTLP[_TRACES]_ENDPOINT, _PROTOCOL, and all others of OTLP
//
// Without the second and third traces are off: a proxy that somebody puts in
// a path for its delays must not log that localhost:4318 refuses it.
const tracesOff = "traces: off (set OTEL_EXPORTER_OTLP_ENDPOINT)"

// where is what the environment says of traces.
type where struct {
	words string
	off   bool
	// protocol is OTLP's, grpc or http/protobuf. Empty: standard output.
	protocol string
}

func tracesDestination() (where, error) {
	if disabled, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED")); disabled {
		return where{words: "traces: off (OTEL_SDK_DISABLED is set)", off: true}, nil
	}
	name := strings.TrimSpace(os.Getenv("OTEL_TRACES_EXPORTER"))
	endpoint, variable := tracesEndpoint()
	switch name {
	case "none":
		return where{words: "traces: off (OTEL_TRACES_EXPORTER=none)", off: true}, nil
	case "console":
		return where{words: "traces: to standard output"}, nil
	case "":
		if endpoint == "" {
			return where{words: tracesOff, off: true}, nil
		}
	case "otlp":
	default:
		return where{}, fmt.Errorf("OTEL_TRACES_EXPORTER=%s: use otlp, console or none", name)
	}
	return describeOTLP(endpoint, variable)
}

func tracesEndpoint() (value, variable string) {
	for _, variable = range []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		if value = strings.TrimSpace(os.Getenv(variable)); value != "" {
			return value, variable
		}
	}
	return "", ""
}

func describeOTLP(endpoint, variable string) (where, error) {
	protocol := first(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	if protocol != "grpc" && protocol != "http/protobuf" {
		return where{}, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL=%s: use grpc or http/protobuf", protocol)
	}
	if endpoint == "" {
		endpoint = "http://localhost:4318"
		if protocol == "grpc" {
			endpoint = "http://localhost:4317"
		}
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "unix" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		// The exporters would use their default instead, silently.
		return where{}, fmt.Errorf("%s is not a URL: write it like http://localhost:4317", variable)
	}
	if protocol == "http/protobuf" && variable != "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" {
		u = u.JoinPath("v1/traces")
	}
	u.User, u.RawQuery = nil, "" // may hold secrets
	return where{words: fmt.Sprintf("traces: %s (%s)", u, protocol), protocol: protocol}, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" {
			return v
		}
	}
	return ""
}

// positive is a variable's value if it's a whole number above 0.
func positive(variable string, otherwise int) int {
	if n, err := strconv.Atoi(strings.TrimSpace(os.Getenv(variable))); err == nil && n > 0 {
		return n
	}
	return otherwise
}
