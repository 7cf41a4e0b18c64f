package study

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/represent"
)

const probeText = `name: probes
data: [{name: shapes, shapes: {n: 60, size: 16, seed: 2}}]
models: [{name: one, onnx: one.onnx, layers: ["op:Relu", output]}]
transforms:
  - {name: drawn, brightness: [0.2, 1.8]}
  - {name: dim, brightness: {values: [0.25, 0.5]}}
  - {name: flip, flip: horizontal}
measures:
  - informativeness: {factors: [x, label], probe: ridge}
  - parameter-equivariance: {probe: [ridge]}
  - representation-equivariance: {probe: [ridge]}
  - invariance: {parts: 2}
  - disentanglement: {factors: x, probe: ridge, pool: flatten}
`

func TestProbesInStudies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	o := options(t)
	o.Representations = &represent.Store{Dir: filepath.Join(dir, "store")}
	result := mustRun(t, parseIn(t, dir, probeText), filepath.Join(dir, "run"), o)
	count := map[string]int{}
	for _, r := range result.Rows {
		if r.Layer == "" || r.Model != "one" || r.N == 0 {
			t.Errorf("the row %+v", r)
		}
		count[strings.Join([]string{r.Measure, r.Transform, r.Parameter, r.Factor, r.Statistic}, " ")]++
	}
	for _, want := range []string{
		"informativeness   x r2", "informativeness   label f1", "informativeness   x baseline-rmse",
		"parameter-equivariance drawn   rmse", "parameter-equivariance dim   rmse",
		"representation-equivariance flip   gain", "representation-equivariance drawn   cosine",
		"invariance drawn 0.6  cosine", "invariance drawn 1.4  l2", "invariance dim 0.25  cosine", "invariance flip   cosine",
		"disentanglement drawn 0.4 x rmse-change", "disentanglement dim 0.5 x rmse-change", "disentanglement flip  x rmse-change",
	} {
		if count[want] != 2 { // layers
			t.Errorf("there are %d rows of %q", count[want], want)
		}
	}
	skipped := fmt.Sprint(result.Record.Skipped)
	if !strings.Contains(skipped, "flip has no parameter that varies") {
		t.Errorf("skipped are %s", skipped)
	}
}
