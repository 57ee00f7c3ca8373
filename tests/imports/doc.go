// Package imports loads files into a running server as people do: with sqe import,
// with the clients that send files, and with clients that misbehave.
package imports
