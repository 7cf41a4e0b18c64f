package gpu

import (
	"runtime"
	"slices"
	"structs"
	"unsafe"

	"github.com/noether-ml/noether/internal/dynlib"
)

// Values of the Vulkan API (vulkan_core.h). Those that start with type are VkStructureType values.
const (
	typeApplicationInfo    = 0
	typeInstanceCreateInfo = 1
	typeMemoryProperties2  = 1000059006
	typeMemoryBudget       = 1000237000
	version11              = 1<<22 | 1<<12 // Vulkan 1.1, the first with vkGetPhysicalDeviceMemoryProperties2
	heapDeviceLocal        = 1             // flag of a heap
	maxHeaps               = 16            // VK_MAX_MEMORY_HEAPS
)

// vulkanKinds holds the Kind of each VkPhysicalDeviceType, from 0.
var vulkanKinds = []Kind{Other, Integrated, Discrete, Virtual, Software}

// applicationInfo is VkApplicationInfo. In it and the structures below, structure is the field
// sType, which tells the type of the structure, and next is pNext, a further structure or nil.
type applicationInfo struct {
	_                         structs.HostLayout
	structure                 uint32
	next, name                unsafe.Pointer
	version                   uint32
	engine                    unsafe.Pointer
	engineVersion, apiVersion uint32
}

// instanceCreateInfo is VkInstanceCreateInfo.
type instanceCreateInfo struct {
	_              structs.HostLayout
	structure      uint32
	next           unsafe.Pointer
	flags          uint32
	application    *applicationInfo
	layerCount     uint32
	layers         unsafe.Pointer
	extensionCount uint32
	extensions     unsafe.Pointer
}

// deviceProperties is VkPhysicalDeviceProperties, of which the fields after the name are not read.
type deviceProperties struct {
	_                                 structs.HostLayout
	api, driver, vendor, device, kind uint32
	name                              [256]byte
	rest                              [1024]byte // at least the 548 bytes that follow
}

// memoryHeap is VkMemoryHeap.
type memoryHeap struct {
	_     structs.HostLayout
	size  uint64
	flags uint32
}

// memoryProperties is VkPhysicalDeviceMemoryProperties2.
type memoryProperties struct {
	_         structs.HostLayout
	structure uint32
	next      *memoryBudget
	typeCount uint32
	types     [32][2]uint32
	heapCount uint32
	heaps     [maxHeaps]memoryHeap
}

// memoryBudget is VkPhysicalDeviceMemoryBudgetPropertiesEXT, of the extension budgetExtension.
type memoryBudget struct {
	_             structs.HostLayout
	structure     uint32
	next          unsafe.Pointer
	budget, usage [maxHeaps]uint64
}

const budgetExtension = "VK_EXT_memory_budget"

// extension is VkExtensionProperties.
type extension struct {
	_       structs.HostLayout
	name    [256]byte
	version uint32
}

// vulkan holds the functions of the Vulkan loader. Results are VkResult: 0 is success, a positive
// number a list that is cut to the given count, and a negative one an error.
type vulkan struct {
	createInstance  func(info *instanceCreateInfo, allocator unsafe.Pointer, instance *uintptr) int32
	destroyInstance func(instance uintptr, allocator unsafe.Pointer)
	enumerate       func(instance uintptr, count *uint32, devices *uintptr) int32
	properties      func(device uintptr, p *deviceProperties)
	memory          func(device uintptr, p *memoryProperties)
	extensions      func(device uintptr, layer unsafe.Pointer, count *uint32, list *extension) int32
}

// Vulkan returns the adapters that Vulkan drivers offer, emulated ones last. It returns none where
// the Vulkan loader (libvulkan1 on Debian) or drivers are missing, such as on macOS.
func Vulkan() []Adapter {
	name := "libvulkan.so.1"
	if runtime.GOOS == "windows" {
		name = "vulkan-1.dll"
	}
	// The library stays open: drivers do not expect to be unloaded.
	library, err := dynlib.Open(name)
	if err != nil {
		return nil
	}
	var v vulkan
	for function, symbol := range map[any]string{
		&v.createInstance: "vkCreateInstance", &v.destroyInstance: "vkDestroyInstance", &v.enumerate: "vkEnumeratePhysicalDevices",
		&v.properties: "vkGetPhysicalDeviceProperties", &v.memory: "vkGetPhysicalDeviceMemoryProperties2",
		&v.extensions: "vkEnumerateDeviceExtensionProperties",
	} {
		if library.Bind(function, symbol) != nil {
			return nil
		}
	}
	return v.adapters()
}

func (v *vulkan) adapters() []Adapter {
	info := instanceCreateInfo{structure: typeInstanceCreateInfo, application: &applicationInfo{structure: typeApplicationInfo, apiVersion: version11}}
	var instance uintptr
	if v.createInstance(&info, nil, &instance) != 0 {
		return nil // no driver
	}
	defer v.destroyInstance(instance, nil)
	count := uint32(maxAdapters)
	devices := make([]uintptr, count)
	if v.enumerate(instance, &count, &devices[0]) < 0 {
		return nil
	}
	var list []Adapter
	for _, d := range devices[:count] {
		var p deviceProperties
		v.properties(d, &p)
		a := Adapter{Name: text(p.name[:]), Kind: Other}
		if int(p.kind) < len(vulkanKinds) {
			a.Kind = vulkanKinds[p.kind]
		}
		if p.api >= version11 {
			a.Memory, a.Free = v.memoryOf(d)
		}
		list = append(list, a)
	}
	return sorted(list)
}

// memoryOf returns the size in bytes of the largest heap of the device's own memory, and how much
// of it this process may still allocate (0 if the device does not tell).
func (v *vulkan) memoryOf(device uintptr) (total, free int64) {
	budget := memoryBudget{structure: typeMemoryBudget}
	p := memoryProperties{structure: typeMemoryProperties2}
	if v.tellsBudget(device) {
		p.next = &budget
	}
	v.memory(device, &p)
	for i, h := range p.heaps[:min(p.heapCount, maxHeaps)] {
		if h.flags&heapDeviceLocal != 0 && int64(h.size) > total {
			total = int64(h.size)
			free = max(int64(budget.budget[i])-int64(budget.usage[i]), 0)
		}
	}
	return total, free
}

// tellsBudget reports whether the device tells how much of its memory is free.
func (v *vulkan) tellsBudget(device uintptr) bool {
	var count uint32
	if v.extensions(device, nil, &count, nil) != 0 || count == 0 {
		return false
	}
	list := make([]extension, count)
	if v.extensions(device, nil, &count, &list[0]) < 0 {
		return false
	}
	return slices.ContainsFunc(list[:count], func(e extension) bool { return text(e.name[:]) == budgetExtension })
}
