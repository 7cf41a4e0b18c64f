package mlflow

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Metric is one value of a metric at a step.
type Metric struct {
	Key   string  `json:"key"`
	Value float64 `json:"value"`
	Time  int64   `json:"timestamp"` // milliseconds since 1970
	Step  int64   `json:"step"`
}

type pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Log logs parameters, tags and metrics to a run of MLflow, in as many requests as its limits need;
// after an error, those of earlier requests remain logged. It leaves out metrics that are not
// finite, which JSON cannot represent. Long values are truncated, and characters that MLflow does
// not permit in names are replaced. Names that thereby become equal get a number as suffix.
func (r *Run) Log(ctx context.Context, params, tags map[string]string, metrics []Metric) error {
	var batches []batch
	for part := range slices.Chunk(pairs(params), maxPairs) {
		batches = append(batches, batch{Params: part})
	}
	for part := range slices.Chunk(pairs(tags), maxPairs) {
		batches = append(batches, batch{Tags: part})
	}
	for part := range slices.Chunk(named(metrics), maxMetrics) {
		batches = append(batches, batch{Metrics: part})
	}
	for _, b := range batches {
		b.Run = r.ID
		if err := r.client.call(ctx, http.MethodPost, "runs/log-batch", b, nil); err != nil {
			return err
		}
	}
	return nil
}

type batch struct {
	Run     string   `json:"run_id"`
	Metrics []Metric `json:"metrics,omitempty"`
	Params  []pair   `json:"params,omitempty"`
	Tags    []pair   `json:"tags,omitempty"`
}

// pairs returns values as pairs with permitted names and lengths, sorted by key.
func pairs(values map[string]string) []pair {
	n := namer{}
	var out []pair
	for _, k := range slices.Sorted(maps.Keys(values)) {
		out = append(out, pair{n.name(k), truncate(values[k], maxText)})
	}
	return out
}

// named returns the finite metrics with permitted names.
func named(metrics []Metric) []Metric {
	n := namer{}
	var out []Metric
	for _, m := range metrics {
		if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
			continue
		}
		m.Key = n.name(m.Key)
		out = append(out, m)
	}
	return out
}

// A namer maps different keys to different permitted names.
type namer struct {
	names map[string]string // by key
	taken map[string]bool   // the names
}

func (n *namer) name(key string) string {
	if n.names == nil {
		n.names, n.taken = map[string]string{}, map[string]bool{}
	}
	if name, known := n.names[key]; known {
		return name
	}
	name := paramName(key)
	for i := 2; n.taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", truncate(paramName(key), maxName-8), i) // 8 bytes for the suffix
	}
	n.names[key], n.taken[name] = name, true
	return name
}

// paramName returns a key in the characters that MLflow permits, as a relative path without empty
// or dot elements.
func paramName(key string) string {
	allowed := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-. /", r):
			return r
		}
		return '_'
	}
	name := path.Clean("/" + strings.Map(allowed, key))[1:]
	// The truncated name may end in a dot or a slash.
	name = path.Clean("/" + truncate(name, maxName))[1:]
	if name == "" {
		return "_"
	}
	return name
}

func truncate(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
