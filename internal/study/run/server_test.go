package run_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
)

// serveBrightness serves a model of two classes: its logits are the mean of an image's channels,
// times gain, and 0. It answers in JSON.
func serveBrightness(t *testing.T, gain func() float64) string {
	t.Helper()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"name": "m", "versions": ["1"], "platform": "", "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3, 16, 16]}],
				"outputs": [{"name": "logits", "datatype": "FP32", "shape": [-1, 2]}]}`)
			return
		}
		var in struct {
			Inputs []struct {
				Shape []int
				Data  []float64
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Inputs) != 1 || in.Inputs[0].Data == nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		x, out, g := in.Inputs[0], []float64(nil), gain()
		size := len(x.Data) / x.Shape[0]
		for i := range x.Shape[0] {
			sum := 0.25 // so that zeros have a class
			for _, v := range x.Data[i*size:][:size] {
				sum += v / float64(size)
			}
			out = append(out, g*sum, 0)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"outputs": []any{map[string]any{"name": "logits", "datatype": "FP32", "shape": []int{x.Shape[0], 2}, "data": out}}})
	}))
	t.Cleanup(h.Close)
	return h.URL + "/v2/models/m"
}

const serverText = `name: test
data: [{name: shapes, shapes: {n: 60, size: 16, seed: 2}}]
models:
  - {name: good, url: "GOOD", layers: [output], scores: logits}
  - {name: replaced, url: "REPLACED", version: 1, layers: [output], scores: logits}
transforms: [{name: half, rotate: {values: [180]}}]
measures: [effective-invariance, distance]
`

// TestServedModel checks that a model whose outputs change during a run has no scores, that others
// keep theirs, and that the next run completes.
func TestServedModel(t *testing.T) {
	t.Parallel()
	var answers atomic.Int64
	steady := serveBrightness(t, func() float64 { return 8 })
	replaced := serveBrightness(t, func() float64 {
		if answers.Add(1) <= 6 {
			return 8
		}
		return 4
	})
	dir, folder := t.TempDir(), t.TempDir()
	s := studytest.Parse(t, dir, strings.NewReplacer("GOOD", steady, "REPLACED", replaced).Replace(serverText))
	result, err := study.Run(t.Context(), s, folder, studytest.Options(t))
	if err == nil || result == nil || !strings.Contains(err.Error(), "changed during the run") {
		t.Fatalf("error %v for a model that changed", err)
	}
	for _, r := range result.Rows {
		if r.Model == "replaced" {
			t.Errorf("a score of the model that changed: %+v", r)
		}
		// A half turn does not change the mean, so effective invariance is the confidence.
		if r.Model == "good" && r.Statistic == "ei" && (r.Value < 0.88 || r.Value > 1) {
			t.Errorf("effective invariance %v", r.Value)
		}
	}
	again := studytest.Run(t, s, folder, studytest.Options(t)) // from now on the model is the same
	if len(again.Rows) != 2*len(result.Rows) {
		t.Errorf("%d rows of both models, %d of the good one", len(again.Rows), len(result.Rows))
	}
}
