package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/report/serve"
	"github.com/noether-ml/noether/internal/webguard"
)

func serveCommand() *cobra.Command {
	var listen string
	var hosts []string
	c := &cobra.Command{
		Use:   "serve DIR [DIR...]",
		Short: "Show folders of runs in the browser, with a JSON interface",
		Long: `Serves the runs in folders, at any depth: a searchable list, the report and the progress of each run, comparisons of runs
or models, and the scores as JSON, CSV and Parquet.

By default it listens on this machine only. With another --listen address every request needs a token: NOETHER_TOKEN from
the environment, or else a new one. If NOETHER_TOKEN is set, requests from this machine need it too. The printed address
contains the token.`,
		Example: "  noether serve runs\n  NOETHER_TOKEN=... noether serve runs --listen :7410",
		Args:    usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, dirs []string) error {
			if _, _, err := net.SplitHostPort(listen); err != nil {
				return usagef(c, "--listen is %s: it must be HOST:PORT, such as 127.0.0.1:7410", listen)
			}
			return runServe(c, dirs, listen, hosts)
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:7410", "address to listen on; port 0: any free port")
	c.Flags().StringSliceVar(&hosts, "host", nil, "additional host name of this server, such as that of a proxy; may be repeated")
	return c
}

// minToken is the smallest length of NOETHER_TOKEN, in bytes.
const minToken = 16

func runServe(c *cobra.Command, dirs []string, listen string, hosts []string) error {
	token := os.Getenv("NOETHER_TOKEN")
	switch {
	case token != "" && len(token) < minToken:
		return fmt.Errorf("NOETHER_TOKEN has %d characters: use at least %d", len(token), minToken)
	case token == "" && !webguard.Local(listen):
		token = rand.Text()
	}
	server, err := serve.New(serve.Options{Dirs: dirs, Hosts: hosts, Token: token, Measures: catalog.Descriptors()})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return errors.Join(fmt.Errorf("serving: %w", err), server.Close())
	}
	fmt.Fprintln(stdout, addressOf(listener, listen, token))
	return errors.Join(server.Serve(c.Context(), listener, listen), server.Close())
}

// addressOf returns the URL to open in a browser, with the token if there is one.
func addressOf(l net.Listener, listen, token string) string {
	host, _, _ := net.SplitHostPort(listen)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	to := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/"}
	if token != "" {
		to.RawQuery = url.Values{"token": {token}}.Encode()
	}
	return to.String()
}
