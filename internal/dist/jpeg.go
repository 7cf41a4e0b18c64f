package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
)

// jpegLibrary is the file of libjpeg-turbo, beside the program.
const jpegLibrary = "libturbojpeg.so.0"

// jpegLicence matches where Debian and Ubuntu keep the licence of the library.
const jpegLicence = "/usr/share/doc/libturbojpeg*/copyright"

var jpegVersion = regexp.MustCompile(`libjpeg-turbo version (\d[\w.]*)`)

// A jpeg is libjpeg-turbo as Debian or Ubuntu has installed it.
type jpeg struct {
	path string
	part part
}

// findJPEG returns the library for packages of a target that run on systems with glibc 2.N or
// later. An error says why they do without: on such a system JPEG images are read by the library
// that is installed, or else at half the speed.
func findJPEG(t target, glibc int) (jpeg, error) {
	if runtime.GOOS != "linux" || t.os != runtime.GOOS || t.arch != runtime.GOARCH {
		return jpeg{}, errors.New("it is taken from the system, which is another one")
	}
	found, _ := filepath.Glob("/usr/lib/*-linux-gnu/" + jpegLibrary) // the pattern is well formed
	if len(found) == 0 {
		return jpeg{}, errors.New("it is not installed: apt-get install libturbojpeg0")
	}
	path := found[0]
	needed, err := glibcNeeded(path)
	if err != nil {
		return jpeg{}, fmt.Errorf("%s: %w", path, err)
	}
	if needed > glibc {
		return jpeg{}, fmt.Errorf("%s needs glibc 2.%d, the packages 2.%d", path, needed, glibc)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return jpeg{}, err
	}
	version := jpegVersion.FindSubmatch(raw)
	if version == nil {
		return jpeg{}, fmt.Errorf("%s states no version", path)
	}
	licences, _ := filepath.Glob(jpegLicence)
	if len(licences) == 0 {
		return jpeg{}, fmt.Errorf("%s has no licence", path)
	}
	licence, err := os.ReadFile(licences[0])
	if err != nil {
		return jpeg{}, err
	}
	v := string(version[1])
	return jpeg{path, part{name: "libjpeg-turbo", version: v, purl: "pkg:generic/libjpeg-turbo@" + v, licence: "IJG AND BSD-3-Clause AND Zlib", text: licence}}, nil
}
