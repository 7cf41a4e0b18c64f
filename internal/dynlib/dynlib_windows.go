package dynlib

import "golang.org/x/sys/windows"

func open(name string) (uintptr, error) {
	handle, err := windows.LoadLibrary(name)
	return uintptr(handle), err
}

func closeHandle(handle uintptr) { _ = windows.FreeLibrary(windows.Handle(handle)) }

func symbol(handle uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(handle), name)
}
