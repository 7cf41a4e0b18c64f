package plan

import (
	"testing"

	"github.com/noether-ml/noether/internal/gpu"
	"github.com/noether-ml/noether/internal/study/spec"
)

// TestDivideMemory checks the limits of memory of a pass over the data without and with a memory
// limit of the process. Of 64 MiB a quarter may be used, since the program itself takes more;
// accumulators (running sums of measures) get half of it. A warning is due if the study's
// bound, 256 MiB, exceeds what the limit of the process allows; 0 is no limit.
func TestDivideMemory(t *testing.T) {
	t.Parallel()
	s := &spec.Study{Memory: spec.DefaultMemory}
	unlimited, limited := DivideMemory(s, &Options{}), DivideMemory(s, &Options{Memory: 64 << 20})
	if unlimited.Accumulators != spec.DefaultMemory || unlimited.activations != spec.DefaultMemory/4 || unlimited.images != imageMemory {
		t.Errorf("without a limit they are %+v, want the defaults", unlimited)
	}
	if limited.Accumulators != 8<<20 || limited.activations != minBuffer || limited.images != minBuffer {
		t.Errorf("with 64 MiB they are %+v, want 8 MiB for accumulators and minBuffer for activations and images", limited)
	}
	for limit, want := range map[int64]bool{64 << 20: true, 4 << 30: false, 0: false} {
		if got := MemoryWarning(s, limit); (got != "") != want {
			t.Errorf("with a limit of %d bytes the warning is %q, want one: %t", limit, got, want)
		}
	}
}

// TestMemoryWithoutBound checks that accumulators get a quarter of the free memory if the study
// sets no bound, at least the default, and at most what the limit of the process allows.
// Activations, and on the CPU images, then get a 32nd of the free memory if that is more than their
// part of the default, but no more than the cores, or a device, can use.
func TestMemoryWithoutBound(t *testing.T) {
	t.Parallel()
	free := &Options{Free: 16 << 30, Threads: 2}
	unbounded, bounded := &spec.Study{Memory: spec.DefaultMemory}, &spec.Study{}
	bounded.SetMemory(spec.DefaultMemory)
	for _, c := range []struct {
		study *spec.Study
		o     *Options
		want  [3]int64 // for accumulators, activations and images
	}{
		{unbounded, free, [3]int64{4 << 30, 2 * coreActivationMemory, imageMemory}},
		{unbounded, &Options{Free: 16 << 30, Threads: 16}, [3]int64{4 << 30, 512 << 20, 512 << 20}},
		{unbounded, &Options{Free: 64 << 30, Threads: 2, Device: "coreml"}, [3]int64{16 << 30, deviceActivationMemory, imageMemory}},
		{bounded, free, [3]int64{spec.DefaultMemory, spec.DefaultMemory / 4, imageMemory}},
		{unbounded, &Options{}, [3]int64{spec.DefaultMemory, spec.DefaultMemory / 4, imageMemory}},
		{unbounded, &Options{Free: 100 << 20}, [3]int64{spec.DefaultMemory, spec.DefaultMemory / 4, imageMemory}},
		{unbounded, &Options{Free: 4 << 30}, [3]int64{1 << 30, 128 << 20, imageMemory}},
		{unbounded, &Options{Free: 16 << 30, Memory: 64 << 20}, [3]int64{8 << 20, minBuffer, minBuffer}},
	} {
		if got := DivideMemory(c.study, c.o); got.Accumulators != c.want[0] || got.activations != c.want[1] || got.images != c.want[2] {
			t.Errorf("free %d, limit %d: %d bytes for accumulators, %d for activations and %d for images, want %d", c.o.Free, c.o.Memory, got.Accumulators, got.activations, got.images, c.want)
		}
	}
}

// TestDeviceMemoryBoundsBatches checks that a batch takes at most half of a device's free memory,
// for which three quarters of its memory are taken if it is not known, and that a driver in
// software has the batches of the CPU.
func TestDeviceMemoryBoundsBatches(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		adapter       gpu.Adapter
		batch, device int64 // largest number of samples, and bytes
	}{
		{gpu.Adapter{Kind: gpu.Discrete, Memory: 8 << 30, Free: 6 << 30}, maxDeviceBatch, 3 << 30},
		{gpu.Adapter{Kind: gpu.Integrated, Memory: 8 << 30}, maxDeviceBatch, 3 << 30},
		{gpu.Adapter{Kind: gpu.Software, Memory: 2 << 30}, maxBatch, 768 << 20},
		{gpu.Adapter{}, maxDeviceBatch, 0},
	} {
		// slots is the number of batches in memory: two if a device computes one meanwhile.
		l := MemoryLimits{batch: maxBatch, slots: 1}
		if l.useDevice(c.adapter); l.batch != c.batch || l.device != c.device || l.slots != 2 {
			t.Errorf("%+v: %+v, want batches of %d and %d bytes", c.adapter, l, c.batch, c.device)
		}
	}
}

// TestKeeps checks which devices have memory of their own, where activations can stay.
func TestKeeps(t *testing.T) {
	t.Parallel()
	for device, want := range map[string]bool{"": false, "cpu": false, "webgpu": true, "cuda": true, "coreml": false} {
		if l := DivideMemory(&spec.Study{Memory: spec.DefaultMemory}, &Options{Device: device}); l.keeps != want {
			t.Errorf("device %q: %v, want %v", device, l.keeps, want)
		}
	}
}

// TestCachedBatch checks that batches are smaller if the activations that are read of a sample are
// larger, but have at least coreImages images for each of the two cores. The keys are bytes for a
// sample.
func TestCachedBatch(t *testing.T) {
	t.Parallel()
	for read, want := range map[int64]int64{0: 2 * coreActivations, 1 << 20: 24, 3 << 19: 16, 64 << 20: 2 * coreImages} {
		if got := (MemoryLimits{cores: 2}).cachedBatch(read); got != want {
			t.Errorf("%d bytes a sample: batches of %d, want %d", read, got, want)
		}
	}
}
