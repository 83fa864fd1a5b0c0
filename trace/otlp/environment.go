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

// destination is where traces go, in words. off: nowhere.
func destination() (words string, off bool, err error) {
	if disabled, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED")); disabled {
		return "traces: off (OTEL_SDK_DISABLED is set)", true, nil
	}
	name := strings.TrimSpace(os.Getenv("OTEL_TRACES_EXPORTER"))
	endpoint, variable := tracesEndpoint()
	switch name {
	case "none":
		return "traces: off (OTEL_TRACES_EXPORTER=none)", true, nil
	case "console":
		return "traces: to standard output", false, nil
	case "":
		if endpoint == "" {
			return tracesOff, true, nil
		}
	case "otlp":
	default:
		return "", false, fmt.Errorf("OTEL_TRACES_EXPORTER=%s: use otlp, console or none", name)
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

func describeOTLP(endpoint, variable string) (string, bool, error) {
	protocol := first(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	if protocol != "grpc" && protocol != "http/protobuf" {
		return "", false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL=%s: use grpc or http/protobuf", protocol)
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
		return "", false, fmt.Errorf("%s is not a URL: write it like http://localhost:4317", variable)
	}
	if protocol == "http/protobuf" && variable != "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" {
		u = u.JoinPath("v1/traces")
	}
	u.User, u.RawQuery = nil, "" // may hold secrets
	return fmt.Sprintf("traces: %s (%s)", u, protocol), false, nil
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
