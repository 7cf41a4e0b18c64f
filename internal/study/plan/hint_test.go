package plan_test

import (
	"fmt"
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestMemoryHintIsTrue checks the hint that a study gets if its memory limit makes it read the data
// in several passes: with how much memory there would be fewer. The study is studytest.Text
// with 150 images. With that memory there are as few passes as the hint says, and
// no further hint. With 1 MiB less there are more passes. The samples "through the engine" are
// those that ONNX Runtime runs.
func TestMemoryHintIsTrue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	// passes returns the number of passes within a memory limit in bytes, the number of samples in
	// forward passes, and the hint.
	passes := func(memory int64) (n int, forwards int64, hint string) {
		t.Helper()
		s := studytest.Parse(t, dir, studytest.Text+fmt.Sprintf("memory: %d\n", memory))
		p, err := study.NewPlan(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for _, pass := range plan.Passes(p.Cells, plan.LimitsOf(s, &o), study.Shard{}) {
			n++
			forwards += pass.Forwards()
		}
		return n, forwards, p.MemoryHint(&o)
	}
	many, forwards, hint := passes(100 << 10)
	var mebibytes int64
	var fewerPasses, hintPasses int
	var fewerForwards, hintForwards int64
	if _, err := fmt.Sscanf(hint, "with memory: %dMiB the passes would be %d instead of %d, and the samples through the engine %d instead of %d", &mebibytes, &fewerPasses, &hintPasses, &fewerForwards, &hintForwards); err != nil {
		t.Fatalf("hint %q: %v", hint, err)
	}
	if hintPasses != many || hintForwards != forwards || fewerPasses >= many || fewerForwards >= forwards {
		t.Errorf("%d passes of %d samples have the hint %q, want one with these numbers, and smaller ones with more memory", many, forwards, hint)
	}
	if n, count, again := passes(mebibytes << 20); n != fewerPasses || count != fewerForwards || again != "" {
		t.Errorf("with %d MiB there are %d passes of %d samples and the hint %q, want no hint and the numbers of %q", mebibytes, n, count, again, hint)
	}
	if n, _, _ := passes((mebibytes - 1) << 20); mebibytes > 1 && n <= fewerPasses {
		t.Errorf("with 1 MiB less than %d there are still %d passes: %q", mebibytes, n, hint)
	}
}
