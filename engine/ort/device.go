package ort

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/internal/gpu"
)

// Values of Options.Device that differ from the others in how sessions are made or run.
const (
	cpu    = "cpu"
	cuda   = "cuda"
	webgpu = "webgpu"
)

// Auto is the value of the program's flag --device that stands for the first graphics processor
// that is not emulated by software, or else the CPU. Runtime.Resolve replaces it.
const Auto = "auto"

// A provider is an execution provider of the engine with the name that Options.Device has for it.
// use adds the provider to the options of a session.
type provider struct {
	device, name string
	use          func(*binding.SessionOptions) error
}

var providers = []provider{
	{cpu, "CPUExecutionProvider", func(*binding.SessionOptions) error { return nil }},
	{cuda, "CUDAExecutionProvider", useCUDA},
	{webgpu, "WebGpuExecutionProvider", useWebGPU},
	{"tensorrt", "TensorrtExecutionProvider", useTensorRT},
	{"coreml", "CoreMLExecutionProvider", func(o *binding.SessionOptions) error { return o.AppendExecutionProviderCoreMLV2(nil) }},
	{"openvino", "OpenVINOExecutionProvider", func(o *binding.SessionOptions) error { return o.AppendExecutionProviderOpenVINO(nil) }},
	{"directml", "DmlExecutionProvider", useDirectML},
}

func (o Options) onCPU() bool { return OnCPU(o.Device) }

// OnCPU reports whether a value of Options.Device is the CPU.
func OnCPU(device string) bool { return device == "" || device == cpu }

// HasMemory reports whether a value of Options.Device has memory of its own, so that tensors are
// copied from it. The providers of the others return tensors in the CPU's memory.
func HasMemory(device string) bool {
	return slices.Contains([]string{cuda, webgpu, "tensorrt", "directml"}, device)
}

func (r *Runtime) useDevice(o *binding.SessionOptions, device string) error {
	if OnCPU(device) {
		return nil
	}
	i := slices.IndexFunc(providers, func(p provider) bool { return p.device == device })
	if i < 0 {
		return fmt.Errorf("unknown device %q: use one of %s", device, strings.Join(DeviceNames(), ", "))
	}
	p := providers[i]
	if !slices.Contains(r.providers, p.name) {
		return fmt.Errorf("device %q: the ONNX Runtime library %s was built without %s: set --onnxruntime to a library with it, or remove --device", device, r.path, p.name)
	}
	// On macOS and Windows WebGPU uses other adapters than those that package gpu lists.
	listed := runtime.GOOS != "darwin" && runtime.GOOS != "windows"
	if device == webgpu && listed && len(gpu.Vulkan()) == 0 {
		return errNoAdapter
	}
	if err := p.use(o); err != nil {
		return fmt.Errorf("device %q: the ONNX Runtime library %s cannot use %s on this machine (%w): install its requirements, set --onnxruntime to another library, or remove --device", device, r.path, p.name, oneLine(err))
	}
	return nil
}

// errNoAdapter is the error for WebGPU on a machine without a graphics driver. If the library were
// asked for WebGPU there, it would also print to the terminal.
var errNoAdapter = errors.New(`device "webgpu": no graphics adapter was found: install the Vulkan loader and the driver of the GPU (on Debian libvulkan1, and mesa-vulkan-drivers or nvidia-driver), or remove --device`)

// DeviceNames returns the values of Options.Device.
func DeviceNames() []string {
	var names []string
	for _, p := range providers {
		names = append(names, p.device)
	}
	return names
}

// A Device is a device that sessions can use.
type Device struct {
	Name string // value of Options.Device
	// Adapter is the graphics hardware that the engine chooses. Its name is empty and its memory 0
	// where they are not known.
	Adapter gpu.Adapter
}

// String returns the name with the hardware's name, kind and memory, as far as known.
func (d Device) String() string {
	if d.Adapter.Name == "" {
		return d.Name
	}
	text := fmt.Sprintf("%s (%s, %s", d.Name, d.Adapter.Name, d.Adapter.Kind)
	if d.Adapter.Memory > 0 {
		text += ", " + bytesText(d.Adapter.Memory)
	}
	return text + ")"
}

// Devices returns the devices that sessions can use. It tries each one, since the library of a
// provider or a driver may be missing.
func (r *Runtime) Devices() []Device {
	var list []Device
	for _, p := range providers {
		if r.usable(p.device) {
			list = append(list, DeviceOf(p.device))
		}
	}
	return list
}

func (r *Runtime) usable(device string) bool { return r.CheckDevice(device) == nil }

// CheckDevice returns the error that a session for the device would have: the device is not known,
// the library was built without it, or a driver is missing.
func (r *Runtime) CheckDevice(device string) error {
	if OnCPU(device) {
		return nil
	}
	options, err := binding.NewSessionOptions()
	if err != nil {
		return oneLine(err)
	}
	defer options.Destroy()
	return r.useDevice(options, device)
}

// DeviceOf returns a device with the hardware that the engine chooses for it.
func DeviceOf(name string) Device {
	d := Device{Name: name}
	var adapters []gpu.Adapter
	switch name {
	case cuda, "tensorrt":
		adapters = gpu.CUDA()
	case webgpu:
		adapters = gpu.Vulkan()
	}
	if len(adapters) > 0 {
		d.Adapter = adapters[0]
	}
	return d
}

// Resolve returns a value of Options.Device for a value of --device. For Auto it is the first of
// "cuda" and "webgpu" that has a graphics processor which is not emulated, or else "cpu".
func (r *Runtime) Resolve(device string) string {
	if device != Auto {
		return device
	}
	for _, name := range []string{cuda, webgpu} {
		if !r.usable(name) {
			continue
		}
		// Every Mac has a graphics processor, and cuda has no software driver.
		if adapter := DeviceOf(name).Adapter; name == cuda || runtime.GOOS == "darwin" || adapter.Name != "" && adapter.Kind != gpu.Software {
			return name
		}
	}
	return cpu
}

func useCUDA(o *binding.SessionOptions) error {
	c, err := binding.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer c.Destroy()
	return o.AppendExecutionProviderCUDA(c)
}

// useWebGPU asks for the fastest adapter. WebGPU's device is kept when a session ends, so that
// later sessions need not compile the shaders again.
func useWebGPU(o *binding.SessionOptions) error {
	return o.AppendExecutionProvider("WebGPU", map[string]string{"powerPreference": "high-performance", "preserveDevice": "1"})
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
	// CPU.
	return useCUDA(o)
}

// useDirectML disables memory patterns (one block of memory for all tensors of a run), which the
// provider does not support.
func useDirectML(o *binding.SessionOptions) error {
	if err := o.SetMemPattern(false); err != nil {
		return err
	}
	return o.AppendExecutionProviderDirectML(0) // index of the adapter
}
