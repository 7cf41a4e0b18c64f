package telemetry

import (
	"context"
	"log/slog"
	"sync"
)

// maxLines is the largest number of log lines in the record of a failure.
const maxLines = 30

// A Logger forwards log records, and keeps the last lines of all levels for records of failures.
type Logger struct {
	*slog.Logger
	last *lastLines
}

// NewLogger returns a Logger that forwards to another logger, which may be nil.
func NewLogger(to *slog.Logger) Logger {
	last := &lastLines{}
	memory := slog.NewTextHandler(last, &slog.HandlerOptions{Level: slog.LevelDebug})
	if to == nil {
		return Logger{slog.New(memory), last}
	}
	return Logger{slog.New(&teeHandler{memory, to.Handler()}), last}
}

// Recent returns the last lines, oldest first.
func (l Logger) Recent() []string { return l.last.lines() }

// lastLines keeps the last lines. Each call of Write is one line.
type lastLines struct {
	mutex  sync.Mutex
	recent []string
}

func (l *lastLines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	n := len(p)
	if n > 0 && p[n-1] == '\n' {
		p = p[:n-1]
	}
	if len(l.recent) == maxLines {
		copy(l.recent, l.recent[1:])
		l.recent = l.recent[:maxLines-1]
	}
	l.recent = append(l.recent, string(p))
	return n, nil
}

func (l *lastLines) lines() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return append([]string(nil), l.recent...)
}

// A teeHandler forwards each record to the handler memory, and also to the handler to if that is
// enabled for the record's level.
type teeHandler struct{ memory, to slog.Handler }

func (h *teeHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *teeHandler) Handle(ctx context.Context, r slog.Record) error {
	h.memory.Handle(ctx, r)
	if h.to.Enabled(ctx, r.Level) {
		return h.to.Handle(ctx, r)
	}
	return nil
}

func (h *teeHandler) WithAttrs(as []slog.Attr) slog.Handler {
	return &teeHandler{h.memory.WithAttrs(as), h.to.WithAttrs(as)}
}

func (h *teeHandler) WithGroup(name string) slog.Handler {
	return &teeHandler{h.memory.WithGroup(name), h.to.WithGroup(name)}
}
