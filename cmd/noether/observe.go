package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/observe"
	"github.com/noether-ml/noether/internal/study"
)

type observeFlags struct {
	log, level, metrics string
	hosts               []string
}

func addObserveFlags(c *cobra.Command) *observeFlags {
	o := &observeFlags{}
	f := c.Flags()
	f.StringVar(&o.log, "log", "", "log to standard error as text or json, instead of the progress bar")
	f.StringVar(&o.level, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.metrics, "metrics", "", "serve Prometheus metrics and profiles at this address, such as localhost:9090")
	f.StringSliceVar(&o.hosts, "metrics-host", nil, "further host name by which metrics may be requested, such as that of a service; may be repeated")
	return o
}

// start starts logs, metrics and traces. Call stop with the error of the run, which may be nil: it
// returns that error, as a loggedError if there is a log.
func (f *observeFlags) start(c *cobra.Command, o *study.Options) (stop func(error) error, err error) {
	if f.log != "" {
		if o.Log, err = observe.NewLogger(os.Stderr, f.log, f.level); err != nil {
			return nil, &usageError{c, err}
		}
		o.Warn = func(text string) { o.Log.Warn(text) }
	}
	endTrace, err := observe.Trace(c.Context(), version(), o.Warn)
	if err != nil {
		return nil, err
	}
	var server *observe.Server
	if f.metrics != "" {
		o.Stats = &study.Stats{}
		if server, err = observe.Serve(f.metrics, o.Stats, f.hosts...); err != nil {
			endTrace()
			return nil, err
		}
		o.Warn("metrics at http://" + server.Address + "/metrics, profiles at /debug/pprof")
	}
	return func(err error) error {
		endTrace()
		if server != nil {
			server.Close()
		}
		if err != nil && o.Log != nil {
			return &loggedError{err, o.Log}
		}
		return err
	}, nil
}

// logged makes an error before start a loggedError with --log. Errors of usage are not logged.
func (f *observeFlags) logged(err error) error {
	var usage *usageError
	if f.log == "" || errors.As(err, &usage) {
		return err
	}
	log, logErr := observe.NewLogger(os.Stderr, f.log, f.level)
	if logErr != nil {
		return err
	}
	return &loggedError{err, log}
}

// A loggedError is an error that the program writes to the log when it ends, not to standard error.
type loggedError struct {
	error
	log *slog.Logger
}

func (e *loggedError) Unwrap() error { return e.error }

// showOrLogProgress writes the progress of a run to its log if it has one, else to standard error.
func showOrLogProgress(o *study.Options) (done func()) {
	if o.Log == nil {
		o.Progress, done = showProgress(os.Stderr)
		return done
	}
	var last time.Time
	ended := false // the last of the samples was logged, which completes the bar of who reads the log
	o.Progress = func(p study.Progress) {
		now := time.Now()
		end := p.Done >= p.Total && !ended
		if end || now.Sub(last) >= lineInterval {
			last, ended = now, ended || end
			o.Log.LogAttrs(context.Background(), slog.LevelInfo, "progress", slog.Int64("done", p.Done), slog.Int64("total", p.Total),
				slog.String("pass", fmt.Sprintf("%d/%d", p.Pass, p.Passes)), slog.String("model", p.Model), slog.String("data", p.Data), slog.String("note", p.Note))
		}
	}
	return func() {}
}
