package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/mod/module"

	"github.com/noether-ml/noether/internal/release"
)

// commit is 12 digits, with .dirty if files were changed. make sets it with -ldflags "-X
// main.commit=...".
var commit string

// version returns the version with the commit, if known: "0.2.0-dev+5e7a483c71f0".
func version() string {
	if c := builtFrom(); c != "" {
		return release.Version + "+" + c
	}
	return release.Version
}

// builtFrom returns commit if make set it, else the commit that the go command recorded, or "".
func builtFrom() string {
	info, ok := debug.ReadBuildInfo()
	if commit != "" || !ok {
		return commit
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ".dirty"
		}
	}
	if revision == "" {
		return moduleCommit(info.Main.Version)
	}
	return revision + dirty
}

// moduleCommit returns the commit in the version of an installed module, or "" for a release.
func moduleCommit(version string) string {
	revision, err := module.PseudoVersionRev(version)
	if err != nil {
		return ""
	}
	return revision
}

func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return json.NewEncoder(os.Stdout).Encode(map[string]string{"noether": version(), "commit": builtFrom(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			_, err := fmt.Fprintln(stdout, "noether", version())
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
