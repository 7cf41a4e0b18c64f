package main

import (
	"debug/elf"
	"debug/macho"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// allowed are the libraries that the program may need, because every Linux system that a platform
// tag manylinux of Python wheels promises has them.
var allowed = []string{
	"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libstdc++.so.6", "libgcc_s.so.1", "libresolv.so.2",
	"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
}

// glibcOf maps versions of the C++ library's symbols to the oldest tag manylinux_2_N whose systems
// have them, as the policies of auditwheel (PyPA's checker of wheels) state. N is the minor version
// of glibc 2.
var glibcOf = []struct {
	symbols string // name and version without its last part
	version int    // the largest last part that these systems have
	glibc   int    // N
}{
	{"GLIBCXX_3.4.", 19, 17}, {"GLIBCXX_3.4.", 22, 24}, {"GLIBCXX_3.4.", 24, 27}, {"GLIBCXX_3.4.", 28, 31},
	{"GLIBCXX_3.4.", 29, 34}, {"GLIBCXX_3.4.", 30, 35}, {"GLIBCXX_3.4.", 33, 39},
	{"CXXABI_1.3.", 7, 17}, {"CXXABI_1.3.", 10, 24}, {"CXXABI_1.3.", 11, 27}, {"CXXABI_1.3.", 12, 31},
	{"CXXABI_1.3.", 13, 34}, {"CXXABI_1.3.", 14, 38}, {"CXXABI_1.3.", 15, 39},
}

// A platform is the platform tag of a wheel.
type platform struct {
	name  string
	glibc int // on Linux, N of the oldest version 2.N of glibc
}

func (p platform) String() string { return p.name }

// platformTag returns the platform tag of a wheel for the oldest systems on which all files run: on
// Linux by the versions of the symbols that they import, on macOS by the version that they state.
// On Linux another architecture than amd64 or arm64, a library that is not allowed and a version of
// symbols that no known system has are errors.
func platformTag(goos, goarch string, files ...string) (platform, error) {
	switch goos {
	case "windows":
		return platform{name: map[string]string{"amd64": "win_amd64", "arm64": "win_arm64"}[goarch]}, nil
	case "darwin":
		tag, err := macTag(goarch, files...)
		return platform{name: tag}, err
	}
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[goarch]
	if arch == "" {
		return platform{}, fmt.Errorf("no wheels for %s", goarch)
	}
	glibc := 17 // of the oldest systems with a tag, manylinux2014
	for _, path := range files {
		needed, err := glibcNeeded(path)
		if err != nil {
			return platform{}, fmt.Errorf("%s: %w", path, err)
		}
		glibc = max(glibc, needed)
	}
	return platform{fmt.Sprintf("manylinux_2_%d_%s", glibc, arch), glibc}, nil
}

// macTag returns the tag of the oldest macOS on which files run.
func macTag(goarch string, files ...string) (string, error) {
	major, minor := uint32(11), uint32(0) // macOS 11 is the first for arm64
	for _, path := range files {
		f, err := macho.Open(path)
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		defer f.Close()
		for _, l := range f.Loads {
			raw := l.Raw()
			const buildVersion = 0x32 // LC_BUILD_VERSION: command, size, platform, least version
			if len(raw) >= 16 && f.ByteOrder.Uint32(raw) == buildVersion {
				v := f.ByteOrder.Uint32(raw[12:])
				if v>>16 > major || v>>16 == major && v>>8&0xff > minor {
					major, minor = v>>16, v>>8&0xff
				}
			}
		}
	}
	if minor > 0 { // installers know tags of whole versions
		major++
	}
	return fmt.Sprintf("macosx_%d_0_%s", major, map[string]string{"amd64": "x86_64", "arm64": "arm64"}[goarch]), nil
}

// glibcNeeded returns N of the oldest version 2.N of glibc with which a file runs.
func glibcNeeded(path string) (int, error) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return 0, err
	}
	for _, l := range libraries {
		if !slices.Contains(allowed, l) {
			return 0, fmt.Errorf("it needs %s, which not every system has", l)
		}
	}
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return 0, err
	}
	glibc := 0
	for _, s := range symbols {
		needed, err := glibcWith(s.Version)
		if err != nil {
			return 0, err
		}
		glibc = max(glibc, needed)
	}
	return glibc, nil
}

// glibcWith returns N of the oldest version 2.N of glibc whose systems have a version of symbols,
// such as GLIBC_2.34 or GLIBCXX_3.4.22; 0 if all systems have it.
func glibcWith(symbols string) (int, error) {
	if rest, ok := strings.CutPrefix(symbols, "GLIBC_2."); ok {
		minor, _, _ := strings.Cut(rest, ".")
		return strconv.Atoi(minor)
	}
	known := true
	for _, policy := range glibcOf {
		rest, ok := strings.CutPrefix(symbols, policy.symbols)
		if !ok {
			continue
		}
		version, err := strconv.Atoi(rest)
		if err == nil && version <= policy.version {
			return policy.glibc, nil
		}
		known = false
	}
	if !known {
		return 0, fmt.Errorf("symbols of version %s are newer than the known systems", symbols)
	}
	return 0, nil
}
