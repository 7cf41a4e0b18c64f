package ort

import (
	"fmt"
	"slices"
	"strings"

	binding "github.com/yalue/onnxruntime_go"
)

// A device is an execution provider with the name that Options.Device has for it. use adds the
// provider to the options of a session.
type device struct {
	name, provider string
	use            func(*binding.SessionOptions) error
}

var devices = []device{
	{"cpu", "CPUExecutionProvider", func(*binding.SessionOptions) error { return nil }},
	{"cuda", "CUDAExecutionProvider", useCUDA},
	{"tensorrt", "TensorrtExecutionProvider", useTensorRT},
	{"coreml", "CoreMLExecutionProvider", func(o *binding.SessionOptions) error { return o.AppendExecutionProviderCoreMLV2(nil) }},
	{"openvino", "OpenVINOExecutionProvider", func(o *binding.SessionOptions) error { return o.AppendExecutionProviderOpenVINO(nil) }},
	{"directml", "DmlExecutionProvider", useDirectML},
}

// useDevice makes sessions with these options run on the device. Operators that its provider lacks
// run on the processor.
func (r *Runtime) useDevice(o *binding.SessionOptions, name string) error {
	if name == "" {
		name = "cpu"
	}
	i := slices.IndexFunc(devices, func(d device) bool { return d.name == name })
	if i < 0 {
		return fmt.Errorf("unknown device %q: use one of %s", name, deviceNames())
	}
	d := devices[i]
	if !slices.Contains(r.providers, d.provider) {
		return fmt.Errorf("device %q: the ONNX Runtime library %s was built without %s", name, r.path, d.provider)
	}
	if err := d.use(o); err != nil {
		return fmt.Errorf("device %q: the ONNX Runtime library %s cannot use %s on this machine (%w): install its requirements, set --onnxruntime to another library, or remove --device", name, r.path, d.provider, oneLine(err))
	}
	return nil
}

func deviceNames() string {
	names := make([]string, len(devices))
	for i, d := range devices {
		names[i] = d.name
	}
	return strings.Join(names, ", ")
}

func useCUDA(o *binding.SessionOptions) error {
	c, err := binding.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer c.Destroy()
	return o.AppendExecutionProviderCUDA(c)
}

func useTensorRT(o *binding.SessionOptions) error {
	c, err := binding.NewTensorRTProviderOptions()
	if err != nil {
		return err
	}
	defer c.Destroy()
	if err := o.AppendExecutionProviderTensorRT(c); err != nil {
		return err
	}
	// TensorRT leaves some operators to other providers; CUDA is faster for them than the
	// processor.
	return useCUDA(o)
}

// useDirectML disables memory patterns, which the provider does not support.
func useDirectML(o *binding.SessionOptions) error {
	if err := o.SetMemPattern(false); err != nil {
		return err
	}
	return o.AppendExecutionProviderDirectML(0)
}
