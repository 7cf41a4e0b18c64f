package probe

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/noether-ml/noether/onnx"
)

// TestTrainerPool checks that probes that are trained in parallel, by trainers that a pool reuses,
// have the weights of probes that are trained alone. The probes are single-layer (SLP) and
// multi-layer perceptrons (MLP) that predict a target from a vector. goldenRun, in probe_test.go,
// returns random vectors and two targets, a number and a class. The first probe takes the place of
// a null, a probe for shuffled targets.
func TestTrainerPool(t *testing.T) {
	t.Parallel()
	training := defaultTraining()
	training.Epochs = 4
	r, in, number, class := goldenRun(t, &training)
	r.job.Threads = 2
	var probes []*probeSpec
	for k, want := range []*target{number, class, number, class, number, number} {
		p := &probeSpec{name: fmt.Sprint(k), kind: MLP, hidden: []int{16, 8}, seed: uint64(k), input: in, target: want, train: r.split.train[:200+20*k], validation: r.split.validation}
		if k%3 == 2 {
			p.kind = SLP
		}
		probes = append(probes, p)
	}
	var mutex sync.Mutex
	found := map[string]*onnx.Model{}
	_, err := r.trainProbes(t.Context(), []*probeSet{{probes: probes[1:], nulls: probes[:1]}}, func(_ context.Context, p *probeSpec, net *onnx.Model) (outcome, error) {
		mutex.Lock()
		defer mutex.Unlock()
		found[p.name] = net
		return outcome{{1}}, nil // any outcome: the test compares only weights
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range probes {
		want, err := trainAlone(t.Context(), r, p)
		if err != nil {
			t.Fatal(err)
		}
		for name, w := range want {
			got, err := found[p.name].Tensor(name)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range w.Data {
				if d := math.Abs(float64(v - got.Data[i])); !(d <= 1e-6) {
					t.Fatalf("probe %s: %s[%d] = %g if trained in parallel, want %g", p.name, name, i, got.Data[i], v)
				}
			}
		}
	}
}
