package plan

import (
	"testing"

	"github.com/noether-ml/noether/internal/gpu"
	"github.com/noether-ml/noether/study/spec"
)

func TestShareMemory(t *testing.T) {
	t.Parallel()
	s := &spec.Study{Memory: spec.DefaultMemory}
	wide, narrow := DivideMemory(s, &Options{}), DivideMemory(s, &Options{Memory: 64 << 20})
	if wide.Accumulators != spec.DefaultMemory || wide.activations != activationMemory || wide.images != imageMemory {
		t.Errorf("without a limit the shares are %+v, want the defaults", wide)
	}
	if narrow.Accumulators != 8<<20 || narrow.activations != minBuffer || narrow.images != minBuffer {
		t.Errorf("with 64 MiB the shares are %+v, want 8 MiB for accumulators and the least for buffers", narrow)
	}
	if MemoryWarning(s, 64<<20) == "" || MemoryWarning(s, 4<<30) != "" || MemoryWarning(s, 0) != "" {
		t.Error("MemoryWarning returns a wrong result")
	}
}

func TestMemoryWithoutBound(t *testing.T) {
	t.Parallel()
	free := &Options{Free: 16 << 30}
	unbounded, bounded := &spec.Study{Memory: spec.DefaultMemory}, &spec.Study{}
	bounded.SetMemory(spec.DefaultMemory)
	for _, c := range []struct {
		study *spec.Study
		o     *Options
		want  int64
	}{
		{unbounded, free, 4 << 30},
		{bounded, free, spec.DefaultMemory},
		{unbounded, &Options{}, spec.DefaultMemory},
		{unbounded, &Options{Free: 100 << 20}, spec.DefaultMemory},
		{unbounded, &Options{Free: 16 << 30, Memory: 64 << 20}, 8 << 20},
	} {
		if got := DivideMemory(c.study, c.o).Accumulators; got != c.want {
			t.Errorf("free %d, limit %d: %d bytes, want %d", c.o.Free, c.o.Memory, got, c.want)
		}
	}
}

// TestDeviceMemoryBoundsBatches checks that a batch takes at most half of a device's free memory, and
// that a software driver keeps the CPU's batches.
func TestDeviceMemoryBoundsBatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		adapter       gpu.Adapter
		batch, device int64
	}{
		{gpu.Adapter{Kind: gpu.Discrete, Memory: 8 << 30, Free: 6 << 30}, maxDeviceBatch, 3 << 30},
		{gpu.Adapter{Kind: gpu.Integrated, Memory: 8 << 30}, maxDeviceBatch, 3 << 30},
		{gpu.Adapter{Kind: gpu.Software, Memory: 2 << 30}, maxBatch, 768 << 20},
		{gpu.Adapter{}, maxDeviceBatch, 0},
	} {
		l := MemoryLimits{batch: maxBatch, slots: 1}
		if l.useDevice(c.adapter); l.batch != c.batch || l.device != c.device || l.slots != 2 {
			t.Errorf("%+v: %+v, want batches of %d and %d bytes", c.adapter, l, c.batch, c.device)
		}
	}
}

// TestCachedBatch checks that batches shrink with the size of what is read, and that every core has
// enough images.
func TestCachedBatch(t *testing.T) {
	t.Parallel()
	for read, want := range map[int64]int64{0: 2 * coreActivations, 1 << 20: 24, 1_507_328: 16, 64 << 20: 2 * coreImages} {
		if got := (MemoryLimits{cores: 2}).cachedBatch(read); got != want {
			t.Errorf("%d bytes a sample: batches of %d, want %d", read, got, want)
		}
	}
}
