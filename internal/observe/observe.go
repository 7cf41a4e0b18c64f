// Package observe makes a run observable: structured logs, Prometheus metrics, profiles and
// OpenTelemetry traces. Each is off by default.
package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/webguard"
)

// NewLogger returns a logger that writes lines in a format, text or json, from a level up: debug,
// info, warn or error. Another format or level is an error.
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var lowest slog.Level
	if err := lowest.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("%q is not a log level: use debug, info, warn or error", level)
	}
	o := &slog.HandlerOptions{Level: lowest}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fmt.Errorf("%q is not a log format: use text or json", format)
}

// A Server serves metrics and profiles of the process.
type Server struct {
	Address string // where it listens
	server  *http.Server
}

// Serve listens at an address such as localhost:9090 (port 0: any free port). It serves /metrics
// for Prometheus, /healthz, and profiles under /debug/pprof. It refuses requests whose Host header
// is neither its own name nor one of hosts, against DNS rebinding; see package webguard.
func Serve(address string, stats *study.Stats, hosts ...string) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving metrics: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{stats}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	s := &Server{Address: listener.Addr().String(), server: &http.Server{Handler: webguard.For(address, hosts...).Handler(mux), ReadHeaderTimeout: 10 * time.Second}}
	go s.server.Serve(listener)
	return s, nil
}

// Close closes the server.
func (s *Server) Close() error { return s.server.Close() }

// A collector turns the Stats of a run, its counters, into metrics.
type collector struct{ stats *study.Stats }

var (
	samplesTotal = describe("samples", "Samples that the run puts through the engine, each view counted.", "state")
	cellsTotal   = describe("cells", "Cells of the study.", "state")
	failures     = describe("failures_total", "Cells, models and data sets that failed.")
	samplesRead  = describe("samples_read_total", "Samples of data read, by outcome.", "outcome")
	stageSeconds = describe("stage_seconds_total", "Time spent on each stage; decoding and transforming go on beside the engine.", "stage")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("noether_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{samplesTotal, cellsTotal, failures, samplesRead, stageSeconds} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := c.stats.Snapshot()
	metric := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	metric(samplesTotal, prometheus.GaugeValue, float64(s.Total), "planned")
	metric(samplesTotal, prometheus.GaugeValue, float64(s.Done), "done")
	metric(cellsTotal, prometheus.GaugeValue, float64(s.Cells), "planned")
	metric(cellsTotal, prometheus.GaugeValue, float64(s.Finished), "done")
	metric(failures, prometheus.CounterValue, float64(s.Failures))
	metric(samplesRead, prometheus.CounterValue, float64(s.Decoded-s.Unreadable), "ok")
	metric(samplesRead, prometheus.CounterValue, float64(s.Unreadable), "unreadable")
	for _, stage := range s.Stages {
		metric(stageSeconds, prometheus.CounterValue, stage.Seconds, stage.Name)
	}
}

// Trace sends traces over HTTP to the OTLP endpoint in OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
// OTEL_EXPORTER_OTLP_ENDPOINT, until stop is called. stop sends what is left and waits for at most
// five seconds. Trace does nothing if neither is set, or if OTEL_SDK_DISABLED is true. A protocol
// other than http/protobuf in the environment is an error. If the endpoint does not answer, Trace
// calls warn once.
func Trace(ctx context.Context, version string, warn func(string)) (stop func(), err error) {
	endpoint := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") + os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	if endpoint == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return func() {}, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := os.Getenv(name); p != "" && p != "http/protobuf" {
			return nil, fmt.Errorf("%s is %s; traces are sent by http/protobuf alone", name, p)
		}
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("sending traces: %w", err)
	}
	// The environment comes last, so that it takes precedence.
	about, err := resource.New(ctx, resource.WithHost(), resource.WithAttributes(
		attribute.String("service.name", "noether"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("sending traces: %w", err)
	}
	var warned sync.Once // errors come from several goroutines
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		warned.Do(func() { warn("traces are lost: " + err.Error()) })
	}))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	otel.SetTracerProvider(provider)
	return func() {
		// The context of the run may be done.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			otel.Handle(err)
		}
	}, nil
}
