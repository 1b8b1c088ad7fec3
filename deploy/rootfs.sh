#!/bin/sh
# A base image from Debian's packages alone, where no image can be fetched: deploy/rootfs.sh FOLDER; then build with
# podman build --format docker --build-arg BASE=localhost/debian-base -f deploy/Containerfile -t shortlist .
set -eu
folder=${1:?give a folder that does not exist yet}
debootstrap --variant=minbase bookworm "$folder"
rm -rf "$folder"/var/cache/apt/* "$folder"/var/log/* "$folder"/var/lib/apt/lists/* "$folder"/usr/share/doc/* "$folder"/usr/share/man/* "$folder"/usr/share/locale/*
tar -C "$folder" -c . | podman import - localhost/debian-base
