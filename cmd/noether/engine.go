package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/blas"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/turbojpeg"
	"github.com/noether-ml/noether/scores"
)

// engineFlags are the flags of the commands that run models.
type engineFlags struct {
	command    *cobra.Command // the command that has the flags
	library    string         // path of the ONNX Runtime library; "": it is searched for
	device     string         // where models run, such as "cpu"
	threads    int            // 0: one for each core
	accelerate bool           // use Noether's own faster replacements of operators of ONNX Runtime
	timeout    time.Duration  // time limit of one run of the engine; 0: none
}

const deviceUsage = "cpu, webgpu, cuda, tensorrt, coreml, openvino or directml, or auto for a graphics processor if there is one (see noether doctor)"

// defaultTimeout: a batch takes seconds, or minutes for the largest networks on one core.
const defaultTimeout = time.Hour

func addEngineFlags(c *cobra.Command) *engineFlags {
	e := &engineFlags{command: c}
	f := c.PersistentFlags()
	f.StringVar(&e.library, "onnxruntime", "", "path of the ONNX Runtime library (default: see noether doctor)")
	f.StringVar(&e.device, "device", "cpu", deviceUsage)
	f.IntVar(&e.threads, "threads", 0, "threads of ONNX Runtime and of the BLAS (default: the cores that the scheduler or container allows)")
	f.BoolVar(&e.accelerate, "accelerate", true, "use native operators that are faster on the processor; scores are the same up to rounding")
	f.DurationVar(&e.timeout, "timeout", defaultTimeout, "time limit of one forward pass of a batch, such as 10m; 0: none")
	return e
}

// open loads ONNX Runtime and a fast BLAS, and prints a note if there is none.
func (e *engineFlags) open() (study.Options, error) {
	o, err := e.openRuntime()
	if err != nil {
		return study.Options{}, err
	}
	library := blas.Load()
	library.SetThreads(o.Threads)
	if library.Hint != "" {
		note("no fast BLAS was found, so most linear algebra is computed in plain Go, several times slower: " + library.Hint)
	}
	device := ort.DeviceOf(o.Device)
	o.BLAS, o.Version, o.Warn, o.Memory = &library, version(), note, machine.MemoryLimit()
	o.Record = scores.EngineRecord{ONNXRuntime: o.Runtime.Version(), Device: device.Name, Adapter: device.Adapter.Name, BLAS: library.String(), JPEG: jpegDecoder(), Threads: o.Threads,
		Machine: runtime.GOOS + "/" + runtime.GOARCH}
	return o, nil
}

// openRuntime sets only Runtime, Threads and Device.
func (e *engineFlags) openRuntime() (study.Options, error) {
	if e.threads < 0 {
		return study.Options{}, usagef(e.command, "--threads is %d; it must be a number of threads, or 0 for all cores", e.threads)
	}
	if e.timeout < 0 {
		return study.Options{}, usagef(e.command, "--timeout is %v; it must be a time such as 10m, or 0 for no limit", e.timeout)
	}
	if known := append(ort.DeviceNames(), ort.Auto); !slices.Contains(known, e.device) {
		return study.Options{}, usagef(e.command, "--device is %q: it must be one of %s", e.device, strings.Join(known, ", "))
	}
	o := study.Options{Threads: e.threads}
	if o.Threads <= 0 {
		o.Threads = machine.Cores()
	}
	if limit := machine.MemoryLimit(); limit > 0 {
		debug.SetMemoryLimit(limit / 4 * 3) // collect garbage before the limit is reached
	}
	var err error
	if o.Runtime, err = e.load(); err != nil {
		return study.Options{}, err
	}
	o.Device = o.Runtime.Resolve(e.device)
	return o, nil
}

// jpegDecoder returns the path of libjpeg-turbo, or "Go" for the standard library.
func jpegDecoder() string {
	if path, err := turbojpeg.Find(); err == nil {
		return path
	}
	return "Go"
}

func (e *engineFlags) load() (*ort.Runtime, error) {
	path, _, err := ort.FindFor(e.library, e.device)
	if err != nil {
		return nil, err
	}
	rt, err := ort.Load(path)
	if err != nil {
		return nil, err
	}
	if !e.accelerate {
		rt.DisableAcceleration()
	}
	rt.LimitRuns(e.timeout)
	rt.LimitMemory(machine.AvailableMemory) // a model that needs more gives an error
	rt.Notify(note)
	rt.Watch(worker)
	return rt, nil
}

// within calls f, or returns an error that names the model if f takes longer than limit.
func within[T any](limit time.Duration, model string, f func() (T, error)) (T, error) {
	value, err := engine.Within(limit, f)
	if expired := (*engine.TimeLimitError)(nil); errors.As(err, &expired) && expired.Limit == limit {
		err = fmt.Errorf("model %s: %w: raise --timeout", model, err)
	}
	return value, err
}

// note prints a remark that is not an error.
func note(text string) { fmt.Fprintln(stderr, "noether: "+text) }
