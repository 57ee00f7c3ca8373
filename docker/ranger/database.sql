-- The role and database of Ranger Admin. It must own the database: since PostgreSQL 15 others may not write the schema public.
CREATE ROLE rangeradmin LOGIN PASSWORD 'rangerR0cks!';
CREATE DATABASE ranger OWNER rangeradmin;
